//! Integration tests of what the crates share, against a real media driver where that decides.

mod agent;
mod channel {
    mod cases;
    mod oracle;
    mod uri;
}
mod cnc_file;
