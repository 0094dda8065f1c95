/// Selects the badges that a count includes (SVC4).
public enum BadgeCountMode: Sendable, Hashable, CaseIterable {
    /// Badges of style point; each counts as 1.
    case point
    /// Badges of style `new`; each counts as 1.
    case new
    /// Badges with a number; the result is the sum of the numbers.
    case number
    /// All badges: numbers are summed; each point, `new` and text counts as 1.
    case all
}
