//! `dump`: what the other commands read of a cluster, as they read it. Printed as it comes: a cluster may
//! be large.

use std::io;

use phalanx_live::Connection;
use phalanx_objects::Object;
use phalanx_objects::read::{self, Item, Problem, Severity};

use crate::args::{DumpArgs, MaskOutput};
use crate::cluster;
use crate::document;
use crate::exit::{Answer, FINE, Failure, NOT_ALL, Printed};
use crate::findings::Findings;
use crate::screen::{self, count};

/// Answers the command.
pub(crate) fn run(args: &DumpArgs) -> Result<Answer, Failure> {
    let connection = Connection::open(&cluster::access(&args.cluster)).map_err(cluster::failure)?;
    let mut dump = Dump::new(args.output);
    dump.print(dump.head());
    connection.read(&mut |path, text| dump.page(path, text)).map_err(cluster::failure)?;
    dump.print(dump.tail());
    dump.end(&connection)
}

/// A dump that is being written.
struct Dump {
    output: MaskOutput,
    objects: u64,
    findings: Findings,
    lost: bool,
    /// Why no more can be printed.
    broken: Option<Failure>,
}

impl Dump {
    fn new(output: MaskOutput) -> Self {
        Self { output, objects: 0, findings: Findings::default(), lost: false, broken: None }
    }

    fn head(&self) -> &'static str {
        match self.output {
            MaskOutput::Yaml => "",
            MaskOutput::Json => "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n",
        }
    }

    fn tail(&self) -> &'static str {
        match self.output {
            MaskOutput::Yaml => "",
            MaskOutput::Json => "\n]}\n",
        }
    }

    /// Writes what a page holds.
    fn page(&mut self, path: &str, text: &str) {
        let mut items = Vec::new();
        read::read(path, text.as_bytes(), &mut |item| items.push(item));
        let mut out = String::new();
        for item in items {
            match item {
                Item::Object(object, _) => match self.object(&object) {
                    Ok(text) => out += &text,
                    Err(failure) => self.broken = Some(failure),
                },
                Item::Problem(problem) => self.problem(&problem),
                // It is listed by its kind, so it is none that is not read, and no watch.
                Item::Unknown { .. } | Item::Gone(..) => {}
            }
        }
        self.print(&out);
    }

    fn object(&mut self, object: &Object) -> Result<String, Failure> {
        self.objects += 1;
        let is_first = self.objects == 1;
        match self.output {
            MaskOutput::Yaml => {
                let text = document::yaml(object)?;
                Ok(if is_first { text } else { format!("---\n{text}") })
            }
            MaskOutput::Json => {
                let text = serde_json::to_string(object).map_err(|error| {
                    Failure::new(format!("An object can't be written: {error}."))
                })?;
                Ok(if is_first { text } else { format!(",\n{text}") })
            }
        }
    }

    fn problem(&mut self, problem: &Problem) {
        // What looks wrong in an object that is written all the same is for `lint` to say.
        if problem.severity == Severity::Error {
            self.lost = true;
            self.findings.problem(problem);
        }
    }

    fn print(&mut self, text: &str) {
        let broken =
            |error: io::Error| Failure::new(format!("Standard output can't be written: {error}."));
        if self.broken.is_none() {
            self.broken = screen::print_raw(text.as_bytes()).map_err(broken).err();
        }
    }

    fn end(self, connection: &Connection) -> Result<Answer, Failure> {
        if let Some(failure) = self.broken {
            return Err(failure.after(&self.findings));
        }
        let cluster = connection.cluster();
        let (server, version) = (&cluster.server, &cluster.git_version);
        let objects = count(self.objects, "object", "objects");
        let messages = format!("{objects} read from {server}, which is {version}.\n");
        let messages = self.findings.render_errors() + &messages;
        let code = if self.lost { NOT_ALL } else { FINE };
        Ok(Answer { out: Printed::Document(String::new()), messages, code })
    }
}
