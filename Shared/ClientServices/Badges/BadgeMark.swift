/// What a widget shows: a badge's own mark, or what stands for all below a parent (spec, two-way §3, styles).
public enum BadgeMark: Sendable, Hashable {
    /// `.`: a point.
    case point
    /// That many; nothing for 0.
    case number(Int)
    /// `new`: the word, in the app's language.
    case new
    /// A short text.
    case text(String)
    /// Nothing.
    case none

    /// What it counts in a mode.
    func weight(_ mode: BadgeCountMode) -> Int {
        switch (self, mode) {
        case (.number(let number), .number), (.number(let number), .all): number
        case (.point, .point), (.point, .all), (.new, .new), (.new, .all), (.text, .all): 1
        default: 0
        }
    }
}
