//! `mask`: a dump that can be shown to others. What is hidden is decided below; here it is read and
//! printed, and the key to it kept where the user says.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use phalanx_cluster::mask::Mask;
use serde_json::{Value, json};

use crate::args::{MaskArgs, MaskOutput};
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::input::{self, Input};
use crate::screen::count;

/// Answers the command.
pub(crate) fn run(args: &MaskArgs) -> Result<Answer, Failure> {
    if let Some(path) = &args.names {
        refuse_input(path, &args.input.filenames)?;
    }
    let Input { world, findings, passed_over, lost } =
        input::read(&args.input, input::Asked::default())?;
    let unwritable =
        |error: serde_json::Error| Failure::new(format!("An object can't be written: {error}."));
    let Some(mask) = Mask::new(&world).map_err(unwritable)? else {
        return Err(Failure::new("The objects were not kept, so that none can be written."));
    };
    let objects: Vec<Value> = mask.objects().collect::<Result<_, _>>().map_err(unwritable)?;
    if let Some(path) = &args.names {
        write_names(path, &mask)?;
    }
    let out = match args.output {
        MaskOutput::Yaml => document::yaml_stream(&objects)?,
        MaskOutput::Json => {
            document::json(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?
        }
    };
    // What is wrong in an object that is written all the same is for `lint` to say.
    let code = if lost { NOT_ALL } else { FINE };
    let messages = findings.render_errors() + &summary(&mask, passed_over);
    Ok(Answer { out: Printed::Document(out), messages, code })
}

/// Refuses a file for the names that is read, or lies where all is read.
fn refuse_input(names: &Path, inputs: &[PathBuf]) -> Result<(), Failure> {
    let Ok(real) = fs::canonicalize(names) else { return Ok(()) };
    let read = |input: &PathBuf| fs::canonicalize(input).is_ok_and(|input| input == real);
    if !inputs.iter().any(read) {
        return Ok(());
    }
    let path = names.display().to_string();
    let message = format!(
        "{path} is read, and would be lost if the names were written to it. Name another file after \
         --names."
    );
    Err(Failure::new(message).of_file(path))
}

/// What each code stands for, as one JSON object, for its owner alone to read.
fn write_names(path: &Path, mask: &Mask<'_>) -> Result<(), Failure> {
    let text = document::json(mask.codes())?;
    create(path).and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let path = path.display();
        Failure::new(format!("{path} can't be written: {error}.")).of_file(path.to_string())
    })
}

#[cfg(unix)]
fn create(path: &Path) -> std::io::Result<fs::File> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // A file that was there keeps who may read it, unless told otherwise; a pipe has nobody.
    if file.metadata()?.is_file() {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(not(unix))]
fn create(path: &Path) -> std::io::Result<fs::File> {
    fs::File::create(path)
}

fn summary(mask: &Mask<'_>, passed_over: u64) -> String {
    let objects = count(mask.len() as u64, "object", "objects");
    let words = count(mask.codes().len() as u64, "word of names", "words of names");
    let left = match passed_over {
        0 => String::new(),
        1 => "; 1 object of a kind that is not read is left out".to_owned(),
        many => format!("; {many} objects of kinds that are not read are left out"),
    };
    let open = match mask.open_expressions() {
        0 => String::new(),
        1 => " 1 expression takes texts apart: its texts, and the values of attributes that it reads, \
              stay readable."
            .to_owned(),
        many => format!(
            " {many} expressions take texts apart: their texts, and the values of attributes that \
             they read, stay readable."
        ),
    };
    format!("{objects} written, {words} masked{left}.{open}\n")
}
