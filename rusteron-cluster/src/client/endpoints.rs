//! Endpoints of a cluster's members.

use std::fmt;
use std::str::FromStr;

use crate::error::{ClusterError, Result};
use crate::ids::MemberId;

/// The ingress endpoints of a cluster's members, by member id.
///
/// An endpoint is `host:port`, or a name without a port for media drivers whose name resolver knows
/// the name. The driver then decides about the name.
///
/// ```
/// use rusteron_cluster::IngressEndpoints;
///
/// # fn main() -> rusteron_cluster::Result<()> {
/// let endpoints: IngressEndpoints = "0=localhost:9002,1=localhost:9102".parse()?;
/// assert_eq!(endpoints.get(1), Some("localhost:9102"));
/// assert_eq!(endpoints.to_string(), "0=localhost:9002,1=localhost:9102");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngressEndpoints(Vec<(MemberId, String)>);

impl IngressEndpoints {
    /// Returns the endpoints of members. Of a repeated member id, the last endpoint counts.
    pub fn new<M: Into<MemberId>, E: Into<String>>(
        members: impl IntoIterator<Item = (M, E)>,
    ) -> Self {
        let mut endpoints = Self(Vec::new());
        for (member_id, endpoint) in members {
            endpoints.insert(member_id.into(), endpoint.into());
        }
        endpoints
    }

    /// Returns the endpoint of a member.
    pub fn get(&self, member_id: impl Into<MemberId>) -> Option<&str> {
        let member_id = member_id.into();
        self.iter().find(|member| member.0 == member_id).map(|member| member.1)
    }

    /// Returns member ids and endpoints in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = (MemberId, &str)> {
        self.0.iter().map(|(member_id, endpoint)| (*member_id, endpoint.as_str()))
    }

    fn insert(&mut self, member_id: MemberId, endpoint: String) {
        match self.0.iter_mut().find(|member| member.0 == member_id) {
            Some(member) => member.1 = endpoint,
            None => self.0.push((member_id, endpoint)),
        }
    }
}

/// The most members of a text of endpoints. Clusters have fewer; a forged message can have more.
const MAX_MEMBERS: usize = 100;

/// Returns the endpoint of a member in a text of endpoints, however long.
pub(crate) fn find_endpoint(text: &str, member_id: MemberId) -> Option<&str> {
    let mut members = text.split(',').filter_map(|member| member.split_once('='));
    members.rfind(|(id, _)| id.parse() == Ok(member_id)).map(|(_, endpoint)| endpoint)
}

/// Parses `id=endpoint,id=endpoint,…`, of at most 100 members. An error has the kind
/// [`InvalidArgument`](crate::ClusterErrorKind::InvalidArgument).
impl FromStr for IngressEndpoints {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = |member: &str, reason: &str| {
            ClusterError::invalid(format!("ingress endpoints {text:?}: {member:?}: {reason}"))
        };
        let mut endpoints = Self(Vec::new());
        if text.split(',').nth(MAX_MEMBERS).is_some() {
            let text = format!("ingress endpoints: more than {MAX_MEMBERS} members");
            return Err(ClusterError::invalid(text));
        }
        for member in text.split(',') {
            let Some((id, endpoint)) = member.split_once('=') else {
                return Err(invalid(member, "endpoints are written id=host:port,id=host:port"));
            };
            let id = id.parse().map_err(|_| invalid(member, "the id is not a number"))?;
            if endpoint.is_empty() {
                return Err(invalid(member, "the endpoint is empty"));
            }
            endpoints.insert(id, endpoint.to_owned());
        }
        Ok(endpoints)
    }
}

impl fmt::Display for IngressEndpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (member_id, endpoint)) in self.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{member_id}={endpoint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faulty_endpoints_are_named() {
        for (text, expected) in [
            ("", "written id=host:port"),
            ("0=a:1,b:2", "\"b:2\": endpoints are written"),
            ("0=a:1,x=b:2", "\"x=b:2\": the id is not a number"),
            ("0=a:1,1=", "the endpoint is empty"),
            ("0=a:1,", "endpoints are written"),
        ] {
            let error = text.parse::<IngressEndpoints>().unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn too_many_members_are_refused() {
        let members = |count| vec!["1=a:1"; count].join(",");
        assert!(members(100).parse::<IngressEndpoints>().is_ok());
        let error = members(101).parse::<IngressEndpoints>().unwrap_err();
        assert!(error.message().contains("more than 100 members"), "{error}");
    }

    #[test]
    fn endpoint_is_found_in_text() {
        let text = "0=a:1,x,1=b:2,0=c:3,=,-1=";
        assert_eq!(find_endpoint(text, MemberId::new(0)), Some("c:3"));
        assert_eq!(find_endpoint(text, MemberId::new(1)), Some("b:2"));
        assert_eq!(find_endpoint(text, MemberId::new(-1)), Some(""));
        assert_eq!(find_endpoint(text, MemberId::new(2)), None);
        assert_eq!(find_endpoint("", MemberId::new(0)), None);
    }

    #[test]
    fn last_endpoint_of_member_counts() {
        let endpoints: IngressEndpoints = "0=a:1,2=[::1]:2,0=c:3".parse().unwrap();
        assert_eq!(endpoints.to_string(), "0=c:3,2=[::1]:2");
        assert_eq!(endpoints, IngressEndpoints::new([(0, "c:3"), (2, "[::1]:2")]));
        assert_eq!(endpoints.get(1), None);
    }
}
