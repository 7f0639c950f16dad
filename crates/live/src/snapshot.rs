//! What a decision failed on, kept as a file that `plan` reads.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use phalanx_cluster::world::World;
use phalanx_objects::Kind;

/// Writes the objects as a list; answers where it lies.
pub(crate) fn write(world: &World, folder: &Path) -> io::Result<PathBuf> {
    let now = jiff::Timestamp::now().as_second();
    let path = folder.join(format!("phalanx-snapshot-{now}.json"));
    let mut file = BufWriter::new(File::create(&path)?);
    file.write_all(br#"{"apiVersion":"v1","kind":"List","items":["#)?;
    let objects = world.objects().into_iter();
    let all = objects.flat_map(|objects| Kind::ALL.iter().flat_map(|kind| objects.of_kind(*kind)));
    for (at, object) in all.enumerate() {
        file.write_all(if at == 0 { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut file, object)?;
    }
    file.write_all(b"\n]}\n")?;
    file.flush()?;
    Ok(path)
}
