//! Users of this machine, as `/etc/passwd` and `/etc/group` list them.

use std::fs;

use rustix::process::geteuid;

use crate::launcher::UserIds;

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";
/// Where somebody without a home is at home.
const NO_HOME: &str = "/";

/// As whom commands run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name, if there is one.
    name: Option<String>,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: String,
}

impl Account {
    /// The account with this name or number, or `uid:gid`.
    pub fn find(text: &str) -> Result<Self, String> {
        Self::find_in(text, &read(PASSWD)?, &fs::read_to_string(GROUP).unwrap_or_default())
    }

    /// The account under which this process runs.
    pub fn own() -> Self {
        let uid = geteuid().as_raw();
        let passwd = read(PASSWD).unwrap_or_default();
        let unlisted = Self { name: None, uid, gid: uid, groups: Vec::new(), home: NO_HOME.into() };
        entries(&passwd).find(|entry| entry.uid == uid).unwrap_or(unlisted)
    }

    /// Whether this process runs as root.
    pub fn own_is_root() -> bool {
        geteuid().is_root()
    }

    /// Whether it is the one under which this process runs.
    pub fn is_own(&self) -> bool {
        geteuid().as_raw() == self.uid
    }

    /// Its home directory, if it exists.
    pub(super) fn home(&self) -> &str {
        if fs::metadata(&self.home).is_ok_and(|home| home.is_dir()) { &self.home } else { NO_HOME }
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn ids(&self) -> UserIds {
        UserIds { uid: self.uid, gid: self.gid, groups: self.groups.clone() }
    }

    fn find_in(text: &str, passwd: &str, group: &str) -> Result<Self, String> {
        let (user, gid) = match text.split_once(':') {
            Some((user, gid)) => {
                (user, Some(gid.parse().map_err(|_| format!("{gid:?} is not the number of a group"))?))
            }
            None => (text, None),
        };
        let uid: Option<u32> = user.parse().ok();
        let listed =
            entries(passwd).find(|entry| entry.name.as_deref() == Some(user) || Some(entry.uid) == uid);
        let unlisted = || {
            let (uid, gid) = (uid?, gid?);
            Some(Self { name: None, uid, gid, groups: Vec::new(), home: NO_HOME.into() })
        };
        let mut account = listed.or_else(unlisted).ok_or_else(|| {
            let hint = if uid.is_some() { ", so its group is needed too: uid:gid" } else { "" };
            format!("there is no user {user:?} in {PASSWD}{hint}")
        })?;
        account.gid = gid.unwrap_or(account.gid);
        account.groups = vec![account.gid];
        if let Some(name) = &account.name {
            account.groups.extend(groups_of(name, group).filter(|group| *group != account.gid));
        }
        Ok(account)
    }
}

fn read(file: &str) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))
}

/// `name:password:uid:gid:comment:home:shell`
fn entries(passwd: &str) -> impl Iterator<Item = Account> {
    passwd.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, uid, gid, _, home, ..] = fields.as_slice() else { return None };
        Some(Account {
            name: Some((*name).to_owned()),
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
            groups: Vec::new(),
            home: (*home).to_owned(),
        })
    })
}

/// `name:password:gid:member,member`
fn groups_of(user: &str, group: &str) -> impl Iterator<Item = u32> {
    group.lines().filter_map(move |line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [_, _, gid, members] = fields.as_slice() else { return None };
        members.split(',').any(|member| member == user).then(|| gid.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1001:Ann,,,:/home/ann:/bin/sh\nodd\n";
    const GROUPS: &str =
        "root:x:0:\nusers:x:1001:\ndocker:x:7:ann,bob\nadm:x:8:annabel\nbackup:x:9:bob,ann\n";

    fn found(text: &str) -> Result<Account, String> {
        Account::find_in(text, USERS, GROUPS)
    }

    #[test]
    fn a_user_comes_with_home_and_groups() {
        let ann = found("ann").unwrap();
        let ids = UserIds { uid: 1000, gid: 1001, groups: vec![1001, 7, 9] };
        assert_eq!((ann.ids(), ann.home.as_str(), ann.name()), (ids, "/home/ann", Some("ann")));
        assert_eq!(found("1000").unwrap(), ann);
        assert_eq!(found("ann:8").unwrap().ids(), UserIds { uid: 1000, gid: 8, groups: vec![8, 7, 9] });
    }

    #[test]
    fn a_number_that_nobody_has_needs_a_group() {
        let nobody = found("4711:4712").unwrap();
        assert_eq!(nobody.ids(), UserIds { uid: 4711, gid: 4712, groups: vec![4712] });
        assert!(found("4711").unwrap_err().contains("uid:gid"));
        assert!(found("carl").unwrap_err().contains("no user \"carl\""));
        assert!(found("ann:users").unwrap_err().contains("not the number of a group"));
    }

    #[test]
    fn a_home_that_does_not_exist_is_none() {
        assert_eq!(found("ann").unwrap().home(), "/");
    }
}
