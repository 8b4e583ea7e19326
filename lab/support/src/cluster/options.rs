//! Settings of a cluster.

use std::time::Duration;

use super::member_archive::MemberArchive;

/// A service of `lab/java/cluster`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Service {
    /// Answers each message with its bytes.
    #[default]
    Echo,
    /// The twin of the ledger in Rust, which this crate has with the feature `service`.
    Ledger,
    /// The auction of Aeron's cluster tutorial.
    Auction,
    /// No service. The consensus module waits for one in another process.
    None,
}

impl Service {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Echo => "EchoService",
            Self::Ledger => "LedgerService",
            Self::Auction => "io.aeron.samples.cluster.tutorial.BasicAuctionClusteredService",
            Self::None => "none",
        }
    }
}

/// The release of Aeron's Java code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AeronVersion {
    /// The release that `lab/java/pom.xml` names.
    #[default]
    Maven,
    /// The release of the C code, compiled by `lab/java/compile-aeron` from the same package.
    Compiled,
}

/// Settings of a cluster.
#[derive(Debug, Clone)]
pub struct Options {
    /// 1 or more. Clusters of more members take turns, because a machine of two cores runs one at a time.
    pub members: usize,
    pub service: Service,
    /// The services of the first members, instead of `service`.
    pub services: Vec<Service>,
    /// The release of each member; the last one holds for all further members.
    pub versions: Vec<AeronVersion>,
    /// The archives of the first members, instead of the default.
    pub archives: Vec<MemberArchive>,
    /// Followers elect a new leader after this silence. Clients wait twice as long for the new leader.
    pub leader_heartbeat_timeout: Duration,
    /// The service closes a session without messages after this time.
    pub session_timeout: Duration,
    /// `name=value` of further properties.
    pub properties: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            members: 1,
            service: Service::default(),
            services: Vec::new(),
            versions: vec![AeronVersion::default()],
            archives: Vec::new(),
            leader_heartbeat_timeout: Duration::from_secs(5),
            session_timeout: Duration::from_secs(20),
            properties: Vec::new(),
        }
    }
}

impl Options {
    /// Three members with a service.
    pub fn three(service: Service) -> Self {
        Self { members: 3, service, ..Self::default() }
    }

    /// Adds the authenticator and the authorisation service of `lab/java/cluster`, which explain themselves in
    /// `PasswordAuthenticator.java` and `OperatorAuthorisation.java`.
    #[must_use]
    pub fn with_security(mut self) -> Self {
        self.properties.extend(
            [
                "aeron.cluster.authenticator.supplier=PasswordAuthenticator$Supplier",
                "aeron.cluster.authorisation.service.supplier=OperatorAuthorisation$Supplier",
            ]
            .map(str::to_owned),
        );
        self
    }

    pub(super) fn service(&self, member: usize) -> Service {
        self.services.get(member).copied().unwrap_or(self.service)
    }

    pub(super) fn archive(&self, member: usize) -> MemberArchive {
        self.archives.get(member).copied().unwrap_or_default()
    }

    pub(super) fn version(&self, member: usize) -> AeronVersion {
        let versions = &self.versions;
        versions.get(member).or(versions.last()).copied().unwrap_or_default()
    }
}
