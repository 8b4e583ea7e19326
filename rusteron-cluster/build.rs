//! Generates the settings of `ClusterContext` and `ServiceContext`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    for (context, table) in
        [("ClusterContext", "settings/client.txt"), ("ServiceContext", "settings/service.txt")]
    {
        if let Err(error) = rusteron_codegen::generate_plain(context, table) {
            eprintln!("\nrusteron-cluster: {error}\n");
            std::process::exit(1);
        }
    }
}
