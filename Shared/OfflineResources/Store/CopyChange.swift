/// What storing a version changed.
enum CopyChange: Sendable, Hashable {
    /// Nothing was there.
    case added
    /// Another version was there.
    case changed
    /// This version was there.
    case same
    /// There is no room for it; what was there is gone, unless it has edits.
    case notStored
    /// Another version came while this one was on its way: that one stays, and counts as expired.
    case overtaken
}
