//! Lists what a process holds of the system. A test that compares such lists has a process of its
//! own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Returns the names of this process's threads, files and mapped files, and of embedded drivers'
/// directories.
pub fn resources() -> BTreeMap<&'static str, Vec<String>> {
    let names = |dir: &Path| -> Vec<String> {
        let entries = fs::read_dir(dir).expect("a directory").flatten();
        let name = |entry: fs::DirEntry| match fs::read_link(entry.path()) {
            Ok(target) => target.display().to_string(),
            Err(_) => entry.file_name().to_string_lossy().into_owned(),
        };
        // The directory that is being read is a file, too.
        let mut names: Vec<_> = entries.map(name).filter(|name| !name.contains("/proc/")).collect();
        names.sort();
        names
    };
    let maps = fs::read_to_string("/proc/self/maps").expect("this process");
    let mut mapped: Vec<_> = maps
        .lines()
        .filter_map(|line| Some(line.split_once(" /")?.1.to_owned()))
        .filter(|path| !path.contains(".so"))
        .collect();
    mapped.sort();
    let prefix = format!("rusteron-{}-", std::process::id());
    let memory = Path::new("/dev/shm");
    let temporary = std::env::temp_dir();
    let mut directories = names(if memory.is_dir() { memory } else { &temporary });
    directories.retain(|name| name.contains(&prefix));
    BTreeMap::from([
        ("threads", names(Path::new("/proc/self/task"))),
        ("files", names(Path::new("/proc/self/fd"))),
        ("mappings", mapped),
        ("directories", directories),
    ])
}
