//! The table in `build/` compiles the files that Aeron's CMakeLists compile, with the same defines.

#[cfg(all(feature = "driver", feature = "archive"))]
#[allow(dead_code, reason = "the build script uses the rest")]
#[path = "../../build/cmake_options.rs"]
mod cmake_options;

#[cfg(not(all(feature = "driver", feature = "archive")))]
#[test]
fn table_compiles_what_cmake_compiles() {
    crate::skip("comparing with CMake needs the features `driver` and `archive`");
}

#[cfg(all(feature = "driver", feature = "archive"))]
#[test]
fn table_compiles_what_cmake_compiles() {
    parity::check();
}

#[cfg(all(feature = "driver", feature = "archive"))]
mod parity {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use std::process::Command;
    use std::{env, fs};

    use super::cmake_options::{
        DEFINITIONS, FIND_JAVA, LEFT_OUT_OF_DRIVER, LINUX_DEFINITIONS, MINIMUM_VERSION, do_nothing,
        parse_version,
    };
    use crate::skip;

    const CLIENT: &str = "aeron_static";
    const DRIVER: &str = "aeron_driver_static";
    const ARCHIVE: &str = "aeron_archive_c_client_static";

    /// Defined by CMake only: no source file reads it, which `check` verifies.
    const UNREAD: &[&str] = &["AERON_DRIVER"];

    type Names = BTreeSet<String>;

    #[derive(Default)]
    struct Compiled {
        files: Names,
        defines: Names,
    }

    pub(crate) fn check() {
        if cfg!(windows) {
            return skip("the Visual Studio generators of CMake export no compile commands");
        }
        let cmake = env::var("CMAKE").unwrap_or_else(|_| "cmake".to_string());
        if let Err(reason) = suitable(&cmake) {
            return skip(&reason);
        }
        let tree = Path::new(env!("RUSTERON_AERON_SOURCE"));
        if !tree.join("CMakeLists.txt").is_file() {
            return skip("this source tree carries no CMakeLists.txt");
        }

        let dir = tempfile::tempdir().unwrap();
        configure(&cmake, tree, dir.path());
        let commands = fs::read_to_string(dir.path().join("compile_commands.json")).unwrap();
        let commands: serde_json::Value = serde_json::from_str(&commands).unwrap();
        let [client, driver, archive] =
            [CLIENT, DRIVER, ARCHIVE].map(|target| compiled_for(target, &commands));
        let table = table();

        let mut report = String::new();
        let mut cmake_files = union([&client.files, &driver.files, &archive.files]);
        cmake_files.retain(|file| !file.ends_with("/aeronmd.c"));
        compare("file", &table.files, &cmake_files, &mut report);

        // CMake makes several libraries, and the build script one library. So every file gets the defines of
        // all targets. HAVE_POSIX_MEMALIGN, for example, CMake looks for in the client's target only.
        let cmake_defines = union([&client.defines, &driver.defines, &archive.defines]);
        compare("define", &table.defines, &cmake_defines, &mut report);

        // The feature `cmake` links the driver's target in place of the client's.
        let left_out: Names = client.files.difference(&driver.files).cloned().collect();
        let known: Names = LEFT_OUT_OF_DRIVER
            .iter()
            .map(|name| tree.join("aeron-client/src/main/c").join(name).display().to_string())
            .collect();
        compare("client file outside the driver's target:", &known, &left_out, &mut report);

        assert!(report.is_empty(), "the table and Aeron's CMakeLists differ:\n{report}");
        for name in UNREAD {
            if let Some(file) = table.files.iter().find(|file| mentions(file, name)) {
                panic!("{file} reads {name}, which only CMake defines");
            }
        }
    }

    fn suitable(cmake: &str) -> Result<(), String> {
        let (major, minor) = MINIMUM_VERSION;
        let output = Command::new(cmake)
            .arg("--version")
            .output()
            .map_err(|error| format!("needs CMake {major}.{minor}; `{cmake}`: {error}"))?;
        let output = String::from_utf8_lossy(&output.stdout);
        match parse_version(&output) {
            Some(version) if version >= MINIMUM_VERSION => Ok(()),
            _ => Err(format!(
                "needs CMake {major}.{minor}; found: {}",
                output.lines().next().unwrap_or("nothing")
            )),
        }
    }

    fn configure(cmake: &str, tree: &Path, dir: &Path) {
        let modules = dir.join("modules");
        fs::create_dir(&modules).unwrap();
        fs::write(modules.join("FindJava.cmake"), FIND_JAVA).unwrap();
        let platform = if cfg!(target_os = "linux") { LINUX_DEFINITIONS } else { &[] };

        let mut command = Command::new(cmake);
        command.arg("-S").arg(tree).arg("-B").arg(dir);
        // The one generator that every Unix has and that exports the commands.
        command.args(["-G", "Unix Makefiles"]);
        command.args(["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]);
        command.args(["-DBUILD_AERON_DRIVER=ON", "-DBUILD_AERON_ARCHIVE_API=ON"]);
        command.arg(format!("-DCMAKE_MODULE_PATH={}", modules.display()));
        command.arg(format!("-DGRADLE_WRAPPER={}", do_nothing(cmake)));
        for (name, value) in DEFINITIONS.iter().chain(platform) {
            command.arg(format!("-D{name}={value}"));
        }
        // Aeron's CMakeLists ask git for the commit. The build without CMake never does.
        command.env("GIT_DIR", dir.join("no-repository"));
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "cmake failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// The entry's output lies in `CMakeFiles/<target>.dir/`.
    fn compiled_for(target: &str, commands: &serde_json::Value) -> Compiled {
        let dir = format!("/{target}.dir/");
        let mut compiled = Compiled::default();
        for entry in commands.as_array().unwrap() {
            if !entry["output"].as_str().unwrap().contains(&dir) {
                continue;
            }
            compiled.files.insert(entry["file"].as_str().unwrap().to_string());
            for word in shell_words(entry["command"].as_str().unwrap()) {
                if let Some(define) = word.strip_prefix("-D") {
                    compiled.defines.insert(define.to_string());
                }
            }
        }
        assert!(!compiled.files.is_empty(), "CMake has no target {target} any more");
        compiled
    }

    fn table() -> Compiled {
        let plan = fs::read_to_string(env!("RUSTERON_COMPILE_PLAN")).unwrap();
        let mut compiled = Compiled::default();
        for line in plan.lines() {
            match line.split_once(' ').unwrap() {
                ("file", path) => compiled.files.insert(path.to_string()),
                ("define", define) => compiled.defines.insert(define.to_string()),
                other => panic!("unknown line in the compile plan: {other:?}"),
            };
        }
        compiled
    }

    fn union<const N: usize>(sets: [&Names; N]) -> Names {
        sets.into_iter().flatten().cloned().collect()
    }

    fn compare(what: &str, table: &Names, cmake: &Names, report: &mut String) {
        for only in table.difference(cmake) {
            *report += &format!("  {what} {only}: only in the table\n");
        }
        for only in cmake.difference(table).filter(|name| !UNREAD.contains(&name.as_str())) {
            *report += &format!("  {what} {only}: only in CMake\n");
        }
    }

    /// Returns whether the file, or a header beside it, contains the word.
    fn mentions(file: &str, word: &str) -> bool {
        let contains = |path: &Path| {
            let bytes = fs::read(path).unwrap();
            String::from_utf8_lossy(&bytes)
                .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .any(|found| found == word)
        };
        let header = PathBuf::from(file).with_extension("h");
        contains(Path::new(file)) || (header.is_file() && contains(&header))
    }

    /// Splits a command line as a POSIX shell does, as far as CMake makes use of it.
    fn shell_words(command: &str) -> Vec<String> {
        let mut words = vec![];
        let mut word: Option<String> = None;
        let mut quote = None;
        let mut characters = command.chars();
        while let Some(c) = characters.next() {
            match (c, quote) {
                ('\\', None | Some('"')) => {
                    word.get_or_insert_default().extend(characters.next());
                }
                ('"' | '\'', None) => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (c, Some(open)) if c == open => quote = None,
                (c, None) if c.is_whitespace() => words.extend(word.take()),
                (c, _) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        words
    }
}
