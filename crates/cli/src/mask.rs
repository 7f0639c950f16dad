//! `mask`: a dump that can be shown to others. What is hidden is decided below; here it is read and
//! printed, and the key to it kept where the user says.

use std::fs;
use std::path::Path;

use phalanx_cluster::mask::Mask;
use serde_json::{Value, json};

use crate::args::{MaskArgs, MaskOutput};
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::input::{self, Input};
use crate::screen::count;

/// Answers the command.
pub(crate) fn run(args: &MaskArgs) -> Result<Answer, Failure> {
    let Input { world, findings, passed_over, .. } = input::read(&args.input, None)?;
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
    let code = if findings.any_error() { NOT_ALL } else { FINE };
    let messages = findings.render_errors() + &summary(&mask, passed_over);
    Ok(Answer { out: Printed::Document(out), messages, code })
}

/// What each code stands for, as one JSON object.
fn write_names(path: &Path, mask: &Mask<'_>) -> Result<(), Failure> {
    let text = document::json(mask.codes())?;
    fs::write(path, text).map_err(|error| {
        let path = path.display();
        Failure::new(format!("{path} can't be written: {error}.")).of_file(path.to_string())
    })
}

fn summary(mask: &Mask<'_>, passed_over: u64) -> String {
    let objects = count(mask.len() as u64, "object", "objects");
    let words = count(mask.codes().len() as u64, "word of names", "words of names");
    let left = match passed_over {
        0 => String::new(),
        1 => "; 1 object of a kind that is not read is left out".to_owned(),
        many => format!("; {many} objects of kinds that are not read are left out"),
    };
    format!("{objects} written, {words} masked{left}.\n")
}
