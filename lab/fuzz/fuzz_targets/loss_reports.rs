//! A `loss-report.dat` in which anything may be. An input is the file.

#![no_main]

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use rusteron_client::CncFile;
use rusteron_fuzz::cnc;
use rusteron_fuzz::stage::work_dir;

struct Observer {
    cnc: CncFile,
    report: PathBuf,
}

impl Observer {
    fn new() -> Self {
        let dir = work_dir("loss");
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("cnc.dat"), cnc::real_file()).expect("a file");
        let cnc = CncFile::open(&dir, Duration::ZERO).expect("a file that is in order");
        Self { cnc, report: dir.join("loss-report.dat") }
    }
}

fuzz_target!(|report: &[u8]| {
    thread_local! {
        static OBSERVER: Observer = Observer::new();
    }
    OBSERVER.with(|observer| {
        fs::write(&observer.report, report).expect("a file");
        let entries = observer.cnc.loss_report().expect("the file can be read");
        // An entry takes at least 48 bytes. Bytes that are not UTF-8 take up to three times their length as
        // text.
        assert!(entries.len() <= report.len() / 48);
        for entry in entries {
            assert!(entry.observation_count > 0);
            assert!(entry.channel.len() + entry.source.len() <= 3 * report.len());
            black_box(format!("{entry:?}"));
        }
    });
});
