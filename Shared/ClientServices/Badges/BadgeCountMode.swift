/// What is counted (spec, two-way §3, count modes).
public enum BadgeCountMode: Sendable, Hashable, CaseIterable {
    /// Points, each as one.
    case point
    /// `new` marks, each as one.
    case new
    /// Numbers, summed up.
    case number
    /// All of these, and texts, each as one.
    case all
}
