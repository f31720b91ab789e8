//! The judge. He knows who made what; the players do not.
use super::scene::{Between, ELDER, HEIRLOOM, is_policy, thing_path, uid};
use super::server::Shared;

/// Deletes of what the heir requires, since so many deletes ago.
pub fn taken_from_heir(shared: &Shared, since: usize) -> usize {
    let path = thing_path(HEIRLOOM);
    shared.world.deleted.iter().skip(since).filter(|(deleted, _)| *deleted == path).count()
}

/// What the judge found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Children of the policy that outlived it.
    pub left: usize,
    /// Deleted, and not created by the policy, or still required by another.
    pub foreign: usize,
    /// The policy, or its ledger, never went.
    pub stuck: bool,
    /// Writes in all.
    pub writes: usize,
    /// Requests in all.
    pub requests: usize,
}
impl Judgement {
    /// Nothing is wrong.
    pub fn is_clean(self) -> bool {
        self.left == 0 && self.foreign == 0 && !self.stuck
    }
}
/// Judges how things ended.
pub fn judge(shared: &Shared, between: Between) -> Judgement {
    let excused = |uid: &String| shared.foreign.contains(uid) || shared.unproven.contains(uid);
    let ours = |path: &str| path.contains("/things/") && !path.ends_with(ELDER);
    let living = shared.world.objects.iter().filter(|(path, _)| ours(path));
    let left = living.filter(|(_, object)| !excused(&uid(object))).count();
    let deleted = shared.world.deleted.iter().filter(|(path, _)| path.contains("/things/"));
    let meant = |path: &str| between.deletes_all() && path != thing_path(HEIRLOOM);
    let deleted = deleted.filter(|(path, _)| !meant(path));
    let foreign = deleted.filter(|(path, uid)| path.ends_with(ELDER) || shared.foreign.contains(uid)).count();
    let stuck = shared.world.objects.keys().any(|path| is_policy(path) || path.contains("/configmaps/"));
    Judgement { left, foreign, stuck, writes: shared.writes, requests: shared.requests }
}
