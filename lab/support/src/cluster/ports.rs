//! The UDP ports of a member, and what a cluster's settings say of them.

use std::path::Path;

use crate::free_port;

/// The UDP ports of a member.
#[derive(Debug, Clone, Copy)]
pub struct Ports {
    pub archive: u16,
    pub ingress: u16,
    pub consensus: u16,
    pub log: u16,
}

impl Ports {
    #[allow(clippy::new_without_default, reason = "each has other ports")]
    pub fn new() -> Self {
        let [archive, ingress, consensus, log] = [(); 4].map(|()| free_port());
        Self { archive, ingress, consensus, log }
    }

    /// The ingress endpoints of all members, as a client's setting lists them.
    pub fn ingress_endpoints(all: &[Self]) -> String {
        let member = |(id, ports): (usize, &Self)| format!("{id}=localhost:{}", ports.ingress);
        all.iter().enumerate().map(member).collect::<Vec<_>>().join(",")
    }

    /// The properties that all processes of a member have in common, with recordings and the
    /// state of the cluster below a directory.
    pub fn properties(all: &[Self], member_id: usize, root: &Path) -> [String; 5] {
        let member = |(id, ports): (usize, &Self)| {
            let Self { archive, ingress, consensus, log } = ports;
            format!(
                "{id},localhost:{ingress},localhost:{consensus},localhost:{log},localhost:0,localhost:{archive}"
            )
        };
        let members = all.iter().enumerate().map(member).collect::<Vec<_>>().join("|");
        let control = format!("aeron:udp?endpoint=localhost:{}", all[member_id].archive);
        [
            format!("aeron.archive.dir={}", root.join("archive").display()),
            format!("aeron.cluster.dir={}", root.join("cluster").display()),
            format!("aeron.archive.control.channel={control}"),
            format!("aeron.cluster.member.id={member_id}"),
            format!("aeron.cluster.members={members}"),
        ]
    }
}
