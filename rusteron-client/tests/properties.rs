//! Settings from property files. One test, and so one thread, because it changes the environment.

use std::env;
use std::fs;
use std::time::Duration;

use rusteron_client::{Context, ErrorKind, load_properties, load_properties_file};

#[test]
fn properties_become_settings() {
    let text = "# a comment\n\n! another\r\naeron.client.name = from a\\\n   file\n\
                aeron.driver.timeout: 1234\naeron.dir=/tmp/from-properties";
    // SAFETY: nothing else runs in this process.
    unsafe { load_properties(text) }.expect("valid properties");
    let context = Context::new().expect("a context");
    assert_eq!(context.client_name(), "from afile");
    assert_eq!(context.driver_timeout(), Duration::from_millis(1234));
    assert_eq!(context.dir().to_str(), Some("/tmp/from-properties"));

    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, "aeron.client.name=\n").expect("written");
    // SAFETY: as above.
    unsafe { load_properties_file(&file) }.expect("valid properties");
    assert_eq!(env::var_os("AERON_CLIENT_NAME"), None);
    assert_eq!(Context::new().expect("a context").client_name(), "");

    // SAFETY: as above.
    let error = unsafe { load_properties("aeron.dir=/x\n\nno property\n") }.expect_err("line 3");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("line 3 malformed"), "{error:?}");
    // Names that are missing, where C trims back over the blanks in front of them.
    for text in ["=x\n", " =x\n", "  =x\n", "\t  :\n", "   = a\\\n b\n"] {
        // SAFETY: as above.
        let error = unsafe { load_properties(text) }.expect_err(text);
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("line 1 malformed"), "{error:?}");
    }
    // SAFETY: as above.
    unsafe { load_properties("\t aeron.client.name \t= = a\\\n \t\n  # not yet\n  : b\n") }
        .expect("a property");
    assert_eq!(env::var("AERON_CLIENT_NAME").as_deref(), Ok("= a: b"));
    let long = format!("aeron.client.name={}\n", "x".repeat(3000));
    // SAFETY: as above.
    let error = unsafe { load_properties(&long) }.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    // SAFETY: as above.
    let error = unsafe { load_properties_file("/no/such/file") }.expect_err("no file");
    assert_eq!(error.kind(), ErrorKind::Io(std::io::ErrorKind::NotFound));

    // A value that cannot be parsed is an error of the context, with the variable's name.
    // SAFETY: as above.
    unsafe { load_properties("aeron.driver.timeout=soon\n") }.expect("a property");
    let error = Context::new().expect_err("no number");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("AERON_DRIVER_TIMEOUT=soon"), "{error:?}");
}
