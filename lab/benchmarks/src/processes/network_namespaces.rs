//! Networks that are separate from the machine's own.

use std::net::Ipv4Addr;
use std::process::{self, Command};

use clap::ValueEnum;

use crate::command_line::failure::Failure;

/// The device in each of the namespaces.
const DEVICE: &str = "veth0";

/// The way from publisher to subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// One driver, over 127.0.0.1
    Loopback,
    /// A driver in each of two network namespaces, joined by virtual Ethernet devices; needs root and ip
    Namespaces,
}

impl Network {
    /// The name, as the option calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Namespaces => "namespaces",
        }
    }
}

/// Two network namespaces of Linux, joined by a pair of virtual Ethernet devices; removed on drop.
#[derive(Debug)]
pub struct NetworkNamespaces {
    names: [String; 2],
}

impl NetworkNamespaces {
    /// The addresses of the two ends. No other network sees them.
    pub const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 2)];

    /// Makes the namespaces. Their names contain this process's id.
    ///
    /// # Errors
    /// [`Failure::Run`] with the words of the program `ip`, if that program or the permission is missing.
    pub fn create() -> Result<Self, Failure> {
        let names = ["a", "b"].map(|end| format!("rusteron-{}-{end}", process::id()));
        // From here on, a failure removes what there is.
        let namespaces = Self { names };
        let [first, second] = &namespaces.names;
        ip(&["netns", "add", first])?;
        ip(&["netns", "add", second])?;
        let pair = ["link", "add", DEVICE, "netns", first, "type", "veth", "peer", "name", DEVICE];
        ip(&[&pair[..], &["netns", second]].concat())?;
        for (name, address) in namespaces.names.iter().zip(Self::ADDRESSES) {
            ip(&["-n", name, "address", "add", &format!("{address}/24"), "dev", DEVICE])?;
            ip(&["-n", name, "link", "set", DEVICE, "up"])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        Ok(namespaces)
    }

    /// Makes the namespaces if one of the networks needs them.
    ///
    /// # Errors
    /// [`Failure::Usage`] if that program or the permission is missing.
    pub fn for_networks(networks: &[Network]) -> Result<Option<Self>, Failure> {
        if !networks.contains(&Network::Namespaces) {
            return Ok(None);
        }
        Self::create().map(Some).map_err(|failure| {
            let reason = format!(
                "needs root and the program ip (iproute2); `--networks loopback` needs neither: {failure}"
            );
            Failure::usage("--networks <NETWORKS>", Network::Namespaces.name(), reason)
        })
    }

    /// The names, in the order of the addresses.
    pub fn names(&self) -> [&str; 2] {
        self.names.each_ref().map(String::as_str)
    }
}

impl Drop for NetworkNamespaces {
    fn drop(&mut self) {
        for name in &self.names {
            // Where the beginning failed, there is nothing to remove. The devices go with their namespaces.
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

/// Returns the command that runs a program in a namespace. The process has the id of the program.
pub fn in_namespace(command: Command, namespace: Option<&str>) -> Command {
    let Some(namespace) = namespace else { return command };
    let mut inside = Command::new("ip");
    inside.args(["netns", "exec", namespace]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => inside.env(name, value),
            None => inside.env_remove(name),
        };
    }
    inside
}

fn ip(arguments: &[&str]) -> Result<(), Failure> {
    let command = || format!("ip {}", arguments.join(" "));
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .map_err(|error| Failure::run(format_args!("cannot run `{}`", command()), error))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Failure::run(format_args!("`{}`, {}", command(), output.status), words.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_keeps_its_arguments_and_variables() {
        let mut command = Command::new("/bin/x");
        command.args(["a", "b c"]).env("SET", "1").env_remove("REMOVED");
        let inside = in_namespace(command, Some("n"));
        let arguments: Vec<_> = inside.get_args().collect();
        assert_eq!(arguments, ["netns", "exec", "n", "/bin/x", "a", "b c"]);
        let variables: Vec<_> = inside.get_envs().collect();
        assert!(variables.contains(&("SET".as_ref(), Some("1".as_ref()))), "{variables:?}");
        assert!(variables.contains(&("REMOVED".as_ref(), None)), "{variables:?}");
        let outside = in_namespace(Command::new("/bin/x"), None);
        assert_eq!(outside.get_program(), "/bin/x");
    }

    #[test]
    fn failure_has_the_command() {
        let failure = ip(&["no-such-object"]).expect_err("a failure");
        assert!(matches!(&failure, Failure::Run(text) if text.contains("ip no-such-object")));
    }
}
