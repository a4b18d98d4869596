//! Writing a cache.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::Path;

use megagrid_partition::{EdgeSource, Side, parallel};
use xxhash_rust::xxh3::xxh3_64;

use super::EdgeData;
use super::header::{HEADER_BYTES, Header, Section};
use super::names::encode;
use super::pieces::checksums;
use crate::output::write_file;
use crate::{Dictionary, Error};

/// Writes a cache of edges that are grouped by both sides. `right_names` is `None` for a square graph; `labels`, if
/// there are some, are one per left vertex. The file appears when it is complete.
///
/// # Errors
/// Where something is at `path` already, the system refuses, or the edges cannot be brought into memory.
///
/// # Panics
/// Where names or labels are not one per vertex, or `right_names` contradict whether the graph is square.
pub fn write<T: EdgeData>(
    path: impl AsRef<Path>,
    edges: &impl EdgeSource<T>,
    left_names: &Dictionary,
    right_names: Option<&Dictionary>,
    labels: Option<&[f32]>,
) -> Result<(), Error> {
    let path = path.as_ref();
    let [num_left, num_right] = [Side::Left, Side::Right].map(|side| edges.num_vertices(side));
    assert_eq!(left_names.len(), num_left, "left names are one per vertex");
    assert_eq!(right_names.map(Dictionary::len), (!edges.is_square()).then_some(num_right), "right names likewise");
    assert!(labels.is_none_or(|labels| labels.len() == num_left), "labels are one per left vertex");
    let names = [encode(left_names), right_names.map(encode).unwrap_or_default()];
    let counts = [num_left, num_right, edges.num_edges()].map(|count| count as u64);
    let names_bytes = [0, 1].map(|side: usize| names[side].len() as u64);
    let header = Header::new(T::TYPE, edges.is_square(), counts, names_bytes, labels.is_some());
    write_file(path, |file| {
        let mut writer = Writer { path, file, header, checksums: Vec::new() };
        writer.section(Section::LeftOffsets, bytemuck::cast_slice(edges.offsets(Side::Left)))?;
        writer.section(Section::RightOffsets, bytemuck::cast_slice(edges.offsets(Side::Right)))?;
        writer.edges(edges, Side::Right, [Section::RightFarEnds, Section::RightData])?;
        writer.edges(edges, Side::Left, [Section::LeftFarEnds, Section::LeftData])?;
        writer.section(Section::LeftNames, &names[0])?;
        writer.section(Section::RightNames, &names[1])?;
        writer.section(Section::Labels, bytemuck::cast_slice(labels.unwrap_or_default()))?;
        writer.finish()
    })
}

struct Writer<'a> {
    path: &'a Path,
    file: &'a mut File,
    header: Header,
    /// Of the pieces of all sections that have been written.
    checksums: Vec<u64>,
}

impl Writer<'_> {
    /// Writes a section in its place; what is between sections stays zero.
    fn section(&mut self, section: Section, bytes: &[u8]) -> Result<(), Error> {
        let range = self.header.range(section);
        assert_eq!(range.end - range.start, bytes.len() as u64, "the header knows the length of the {section:?}");
        let (sums, written) = parallel::join(|| checksums(bytes), || write_at(self.file, range.start, bytes));
        self.checksums.extend(sums);
        written.map_err(Error::io(self.path))
    }

    fn edges<T: EdgeData>(
        &mut self,
        edges: &impl EdgeSource<T>,
        side: Side,
        [far_ends_section, data_section]: [Section; 2],
    ) -> Result<(), Error> {
        let mut outcome = Ok(());
        let visited = edges.visit_rows(side, 0..edges.num_vertices(side), &mut |far_ends, data| {
            outcome = self
                .section(far_ends_section, bytemuck::cast_slice(far_ends))
                .and_then(|()| self.section(data_section, T::to_bytes(data)));
        });
        visited.map_err(Error::io(self.path)).and(outcome)
    }

    /// Writes the checksums and, last, the header that covers them.
    fn finish(mut self) -> Result<(), Error> {
        let sums: &[u8] = bytemuck::cast_slice(&self.checksums);
        self.header.pieces_checksum = xxh3_64(sums);
        let header: [u8; HEADER_BYTES] = self.header.encode();
        write_at(self.file, self.header.pieces_range().start, sums)
            .and_then(|()| write_at(self.file, 0, &header))
            .map_err(Error::io(self.path))
    }
}

fn write_at(file: &mut File, start: u64, bytes: &[u8]) -> std::io::Result<()> {
    file.seek(std::io::SeekFrom::Start(start))?;
    file.write_all(bytes)
}
