/// The mark that a widget draws: the mark of its own badge, or a summary of all badges below it (SVC4).
public enum BadgeMark: Sendable, Hashable {
    /// A point; `.` in the push format.
    case point
    /// A number; 0 draws nothing.
    case number(Int)
    /// The word "new" in the app's language.
    case new
    /// A short text.
    case text(String)
    /// Nothing.
    case none

    /// The mark's share of a count in a mode.
    func weight(_ mode: BadgeCountMode) -> Int {
        switch (self, mode) {
        case (.number(let number), .number), (.number(let number), .all): number
        case (.point, .point), (.point, .all), (.new, .new), (.new, .all), (.text, .all): 1
        default: 0
        }
    }
}
