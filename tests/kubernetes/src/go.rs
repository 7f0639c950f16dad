//! Building programs with Go from a module that pins them, once: they are kept in the user's cache
//! folder, under the hash of what they are built from.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ring::digest::{Context, SHA256};

use crate::failure::Failure;

/// A program and the package that it is built from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
}

/// A module in Go whose `go.mod` pins programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    /// Its folder beside this crate's `Cargo.toml`.
    pub(crate) folder: &'static str,
    pub(crate) go_mod: &'static str,
    pub(crate) go_sum: &'static str,
    pub(crate) programs: &'static [Program],
}

/// Whether Go is installed.
pub(crate) fn is_installed() -> bool {
    let mut go = Command::new("go");
    go.arg("version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    go.status().is_ok_and(|status| status.success())
}

impl Module {
    /// The folder that holds its programs, which are built where they are not there yet. Another
    /// process that builds them at the same time is waited for.
    ///
    /// # Errors
    /// When Go can't build one, or the cache folder can't be written.
    pub(crate) fn built(&self) -> Result<PathBuf, Failure> {
        let cache = cache()?;
        let name = format!("{}-{}", self.folder, self.key());
        let folder = cache.join(&name);
        if folder.is_dir() {
            return Ok(folder);
        }
        let failed = || Failure::io(format!("Programs can't be kept in {}", cache.display()));
        fs::create_dir_all(&cache).map_err(failed())?;
        // Held until it is dropped, also by a process that is killed.
        let lock = File::create(cache.join(format!("{name}.lock"))).map_err(failed())?;
        lock.lock().map_err(failed())?;
        if folder.is_dir() {
            return Ok(folder);
        }
        let making = tempfile::Builder::new().prefix(&name).tempdir_in(&cache).map_err(failed())?;
        for (at, program) in self.programs.iter().enumerate() {
            self.tell(at, program);
            self.build(program, making.path())?;
        }
        // All of them are there, or none is.
        fs::rename(making.keep(), &folder).map_err(failed())?;
        Ok(folder)
    }

    /// Says what takes so long, past the test runner, which keeps to itself what tests print.
    fn tell(&self, at: usize, program: &Program) {
        let (at, of) = (at + 1, self.programs.len());
        let line = format!("Go builds {} for {} ({at} of {of}).", program.name, self.folder);
        // Nothing depends on its being read.
        let _ = writeln!(std::io::stderr(), "{line}");
    }

    fn build(&self, program: &Program, into: &Path) -> Result<(), Failure> {
        let mut go = Command::new("go");
        go.env("CGO_ENABLED", "0").current_dir(self.path());
        go.args(self.arguments()).arg("-o").arg(into.join(program.name)).arg(program.package);
        let status = go.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.map_err(Failure::io("Go could not be started"))?;
        let done = status.success().then_some(());
        done.ok_or(Failure::Build { name: program.name, status })
    }

    /// What Go is told, where it writes and what it builds aside.
    fn arguments(&self) -> Vec<String> {
        let mut flags = "-s -w".to_owned();
        // A server that is not told its version at link time reports none.
        if let Some(version) = self.version_of("k8s.io/kubernetes") {
            let mut numbers = version.trim_start_matches('v').split('.');
            let mut next = || numbers.next().unwrap_or_default();
            let at = "k8s.io/component-base/version";
            let (major, minor) = (next(), next());
            flags.push_str(&format!(" -X {at}.gitVersion={version}"));
            flags.push_str(&format!(" -X {at}.gitMajor={major} -X {at}.gitMinor={minor}"));
        }
        let fixed = ["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags"];
        fixed.into_iter().map(str::to_owned).chain([flags]).collect()
    }

    /// The version of a module that `go.mod` requires.
    pub(crate) fn version_of(&self, module: &str) -> Option<&'static str> {
        let mut lines = self.go_mod.lines().map(str::split_whitespace);
        lines.find_map(|mut words| {
            (words.next() == Some(module)).then(|| words.next())?.filter(|v| v.starts_with('v'))
        })
    }

    /// The hash of what decides what is built.
    fn key(&self) -> String {
        let mut hash = Context::new(&SHA256);
        let arguments = self.arguments().join("\n");
        for text in [self.go_mod, self.go_sum, &arguments] {
            hash.update(text.as_bytes());
            // So that no text can end where another begins.
            hash.update(&[0]);
        }
        hash.finish().as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder)
    }
}

/// Where programs are kept.
fn cache() -> Result<PathBuf, Failure> {
    let named = |name| std::env::var_os(name).filter(|value: &_| value != OsStr::new(""));
    let base = named("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")));
    Ok(base.ok_or(Failure::NoCache)?.join("phalanx").join("kubernetes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_pin_is_kept_elsewhere() {
        let of = |go_mod, go_sum| Module { folder: "x", go_mod, go_sum, programs: &[] }.key();
        let pinned = "require (\n\tk8s.io/kubernetes v1.37.2\n)\n";
        assert_eq!(of(pinned, "sum"), of(pinned, "sum"));
        assert_ne!(of(pinned, "sum"), of(pinned, "other"));
        assert_ne!(of(pinned, "sum"), of("require (\n\tk8s.io/kubernetes v1.37.1\n)\n", "sum"));
        assert_ne!(of("ab", "c"), of("a", "bc"));
    }

    #[test]
    fn the_server_is_told_its_version() {
        let go_mod = "tool k8s.io/kubernetes/cmd/x\nrequire (\n\tk8s.io/kubernetes v1.37.2\n)\n";
        let module = Module { folder: "x", go_mod, go_sum: "", programs: &[] };
        let flags = module.arguments().pop().expect("flags");
        assert!(flags.contains("gitVersion=v1.37.2"), "{flags}");
        assert!(flags.contains("gitMajor=1 ") && flags.ends_with("gitMinor=37"), "{flags}");
    }
}
