//! Aeron's own C code, compiled when a benchmark needs it: without the guards and the shim of
//! rusteron-sys.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;

use rusteron_core::program::Failure;

use crate::measuring::measurement;

/// The tree that rusteron-sys compiles.
const TREE: &str = env!("RUSTERON_AERON_SOURCE");

/// The files and definitions with which rusteron-sys compiles it.
const PLAN: &str = env!("RUSTERON_AERON_PLAN");

const DRIVER: &str = "aeron-driver/src/main/c";

/// As in a release build by Aeron's CMakeLists.
const FLAGS: [&str; 6] = [
    "-std=c11",
    "-O3",
    "-fstrict-aliasing",
    "-fno-omit-frame-pointer",
    "-mno-omit-leaf-frame-pointer",
    "-w",
];

const LIBRARIES: [&str; 3] = ["-lm", "-ldl", "-lpthread"];

/// Client and driver, compiled as Aeron publishes them. What the same compiler has compiled once is
/// used again.
#[derive(Debug)]
pub struct AeronC {
    dir: PathBuf,
    flags: Vec<String>,
    objects: Vec<PathBuf>,
}

impl AeronC {
    /// Compiles client and driver on all cores, into a folder beside this program that belongs to
    /// compiler and flags.
    ///
    /// # Errors
    /// [`Failure::Run`] with the compiler's output if the code does not compile.
    pub fn compile() -> Result<Self, Failure> {
        let plan = fs::read_to_string(PLAN).map_err(|error| Failure::run(PLAN, error))?;
        let tree = Path::new(TREE);
        let mut flags: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
        let mut sources = Vec::new();
        for line in plan.lines() {
            match line.split_once(' ') {
                Some(("define", define)) => flags.push(format!("-D{define}")),
                Some(("file", file))
                    if !Path::new(file).starts_with(tree.join("aeron-archive")) =>
                {
                    sources.push(PathBuf::from(file));
                }
                _ => {}
            }
        }
        flags.extend(
            ["aeron-client/src/main/c", DRIVER]
                .map(|dir| format!("-I{}", tree.join(dir).display())),
        );
        let program =
            env::current_exe().map_err(|error| Failure::run("the path of this program", error))?;
        let version = Command::new(compiler()).arg("--version").output();
        let version = version
            .map_err(|error| Failure::run(format_args!("cannot run {:?}", compiler()), error))?;
        let key = format!("aeron-c-{:016x}", hash(&(compiler(), version.stdout, &flags)));
        let mut aeron = Self { dir: program.with_file_name(key), flags, objects: Vec::new() };
        aeron.objects = aeron.compile_objects(&sources)?;
        Ok(aeron)
    }

    /// The folder of what is compiled.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Aeron's source tree.
    pub fn tree() -> &'static Path {
        Path::new(TREE)
    }

    /// Links Aeron's media driver, and returns its path.
    ///
    /// # Errors
    /// As for [`program`](Self::program).
    pub fn aeronmd(&self) -> Result<PathBuf, Failure> {
        self.program("aeronmd", &[Self::tree().join(DRIVER).join("aeronmd.c")], &[])
    }

    /// Compiles a C program with `flags` of its own, links it with client and driver, and returns
    /// its path. It is compiled again when a source has changed.
    ///
    /// # Errors
    /// [`Failure::Run`] with the compiler's output if it does not compile.
    pub fn program(
        &self,
        name: &str,
        sources: &[PathBuf],
        flags: &[&str],
    ) -> Result<PathBuf, Failure> {
        let texts: Vec<_> = sources.iter().map(|source| fs::read(source).ok()).collect();
        let path = self.dir.join(format!("{name}-{:016x}", hash(&(sources, flags, texts))));
        build(&path, |temporary| {
            let mut command = self.compiler();
            command.args(flags).args(sources).args(&self.objects).args(LIBRARIES);
            command.arg("-o").arg(temporary);
            command
        })?;
        Ok(path)
    }

    fn compiler(&self) -> Command {
        let mut command = Command::new(compiler());
        command.args(&self.flags);
        command
    }

    fn compile_objects(&self, sources: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
        let dir = self.dir.join("objects");
        fs::create_dir_all(&dir).map_err(|error| Failure::run(dir.display(), error))?;
        let objects: Vec<_> = sources
            .iter()
            .map(|source| {
                let name = source.strip_prefix(TREE).unwrap_or(source).display().to_string();
                dir.join(name.replace('/', "_")).with_extension("o")
            })
            .collect();
        let pairs: Vec<_> = sources.iter().zip(&objects).collect();
        let cores = thread::available_parallelism().map_or(1, Into::into);
        thread::scope(|scope| {
            let compile = |pairs: &[(&PathBuf, &PathBuf)]| {
                pairs.iter().try_for_each(|(source, object)| {
                    build(object, |temporary| {
                        let mut command = self.compiler();
                        command.arg("-c").arg(source).arg("-o").arg(temporary);
                        command
                    })
                })
            };
            let workers: Vec<_> = pairs
                .chunks(pairs.len().div_ceil(cores).max(1))
                .map(|pairs| measurement::spawn(scope, "compiler", move || compile(pairs)))
                .collect::<Result<_, _>>()?;
            workers.into_iter().try_for_each(|worker| measurement::join(worker, "compiler"))
        })?;
        Ok(objects)
    }
}

fn compiler() -> OsString {
    env::var_os("CC").unwrap_or_else(|| "cc".into())
}

/// Makes a file with a compiler, unless it exists.
fn build(path: &Path, command: impl FnOnce(&Path) -> Command) -> Result<(), Failure> {
    if path.is_file() {
        return Ok(());
    }
    // A compiler that is killed leaves a part, and another process may be building the same file.
    let temporary = path.with_extension(format!("{}.tmp", process::id()));
    let mut command = command(&temporary);
    let output = command.output().map_err(|error| {
        Failure::run(format_args!("cannot run {:?}", command.get_program()), error)
    })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::run(
            format_args!("{} does not compile", path.display()),
            words.trim(),
        ));
    }
    fs::rename(&temporary, path).map_err(|error| Failure::run(path.display(), error))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instance without objects, so that tests need not compile Aeron.
    fn empty(dir: &Path) -> AeronC {
        AeronC { dir: dir.to_owned(), flags: Vec::new(), objects: Vec::new() }
    }

    #[test]
    fn program_is_compiled_again_after_a_change() {
        let dir = tempfile::tempdir().expect("a directory");
        let source = dir.path().join("program.c");
        let program = |text: &str, flags: &[&str]| {
            fs::write(&source, text).expect("a source");
            empty(dir.path()).program("program", std::slice::from_ref(&source), flags)
        };
        let main = "int main(void) { return CODE; }";
        let five = program(main, &["-DCODE=5"]).expect("a program");
        let exit_code = |path: &Path| Command::new(path).status().expect("it runs").code();
        assert_eq!(exit_code(&five), Some(5));
        let made = || fs::metadata(&five).and_then(|it| it.modified()).expect("a time");
        let before = made();
        assert_eq!(program(main, &["-DCODE=5"]), Ok(five.clone()));
        assert_eq!(made(), before);
        assert_eq!(exit_code(&program(main, &["-DCODE=6"]).expect("a program")), Some(6));
        let failure = program("int main(void) { return missing; }", &[]).expect_err("no program");
        assert!(matches!(failure, Failure::Run(text) if text.contains("missing")));
    }
}
