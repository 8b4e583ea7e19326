//! Prints the callers' inputs: those for `--check`, or with the argument `wrong`, for `--wrong-input`.

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("wrong") => print!("{}", cross_language_test::wrong_input()),
        _ => print!("{}", cross_language_test::cases()),
    }
}
