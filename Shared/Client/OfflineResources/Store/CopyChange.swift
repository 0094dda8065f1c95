/// The change that storing a version made.
enum CopyChange: Sendable, Hashable {
    /// There was no copy before.
    case added
    /// The copy had another version.
    case changed
    /// The copy had this version.
    case same
    /// The cache is full. The former copy is deleted, unless it has edits.
    case notStored
    /// Another version was stored while this one was in flight. The other one stays and counts as expired.
    case overtaken
}
