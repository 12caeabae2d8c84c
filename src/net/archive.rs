//! Parameters, and all else of their shape, by name and without padding: `w1` (blocks × inputs × units), `w2`, …
//! (inputs × units), `bias1`, `gain1`, `offset1`, …, `out` (units, or outputs × units), `out_bias`.

use std::ops::Range;

use super::shape::{Group, U};
use super::{FactorRows, Net, Params};
use crate::archive::Archive;
use crate::error::Error;
use crate::linalg::scalar::Scalar;

impl Net {
    /// Goes through parameters under `name.`.
    pub(crate) fn archive<T: Scalar>(
        &self,
        name: &str,
        params: &mut Params<T>,
        archive: &mut Archive,
    ) -> Result<(), Error> {
        self.archive_parts(name, &mut params.first, &mut params.rest, archive)
    }

    /// As [`Net::archive`], where there may be several stretches of W_1 and of the rest: one more size in front.
    pub(crate) fn archive_parts<T: Scalar>(
        &self,
        name: &str,
        first: &mut [T],
        rest: &mut [T],
        archive: &mut Archive,
    ) -> Result<(), Error> {
        let n_rest = rest.len() / self.rest_len();
        for group in &self.groups {
            let (array, stretch) =
                if group.first { (&mut *first, self.first_len()) } else { (&mut *rest, self.rest_len()) };
            let ld = if group.u == U::Output { self.last_ld() } else { self.ld };
            let (rows, n_out, parts) = (group.n_in.unwrap_or(1), group.n_out, array.len() / stretch);
            let place = |part: usize, row: usize| -> Range<usize> {
                let at = part * stretch + if group.first { 0 } else { group.at } + row * ld;
                at..at + n_out
            };
            let places = || (0..parts).flat_map(|part| (0..rows).map(move |row| (part, row)));
            let mut plain: Vec<T> = Vec::with_capacity(parts * rows * n_out);
            places().for_each(|(part, row)| plain.extend_from_slice(&array[place(part, row)]));
            let mut shape = Vec::new();
            shape.extend((group.first || n_rest > 1).then_some(parts));
            shape.extend(group.n_in);
            shape.push(n_out);
            archive.array(&format!("{name}.{}", group.name()), &shape, &mut plain)?;
            if archive.is_reading() {
                for ((part, row), values) in places().zip(plain.chunks_exact(n_out)) {
                    array[place(part, row)].copy_from_slice(values);
                }
            }
        }
        Ok(())
    }

    /// Goes through the factors of many gradients under `name.`.
    pub(crate) fn archive_factors(
        &self,
        name: &str,
        rows: &mut FactorRows,
        archive: &mut Archive,
    ) -> Result<(), Error> {
        let mut blocks: Vec<u64> = rows.blocks.iter().map(|&b| b as u64).collect();
        archive.list(&format!("{name}.block"), 1, &mut blocks)?;
        if let Some(bad) = blocks.iter().find(|&&b| b >= self.n_blocks as u64) {
            let (name, want) = (format!("{name}.block"), format!("below {}", self.n_blocks));
            return Err(Error::Array { name, want, got: bad.to_string() });
        }
        rows.blocks = blocks.iter().map(|&b| b as usize).collect();
        for (g, group) in self.groups.iter().enumerate() {
            archive.list(&format!("{name}.{}.u", group.name()), group.n_out, &mut rows.u[g])?;
            let mut lengths = vec![rows.u[g].len() / group.n_out];
            if let Some(n_in) = group.n_in {
                archive.list(&format!("{name}.{}.v", group.name()), n_in, &mut rows.v[g])?;
                lengths.push(rows.v[g].len() / n_in);
            }
            if let Some(&got) = lengths.iter().find(|&&n| n != rows.blocks.len()) {
                return Err(Error::Shape { what: "rows of the factors", expected: rows.blocks.len(), got });
            }
        }
        Ok(())
    }
}

impl Group {
    /// The name of its parameters.
    fn name(&self) -> String {
        match (self.u, self.n_in) {
            (U::Output, _) => "out".into(),
            (U::Outputs, _) => "out_bias".into(),
            (U::DeltaZ(l), Some(_)) => format!("w{}", l + 1),
            (U::DeltaZ(l), None) => format!("bias{}", l + 1),
            (U::DeltaGain(l), _) => format!("gain{}", l + 1),
            (U::DeltaY(l), _) => format!("offset{}", l + 1),
        }
    }
}
