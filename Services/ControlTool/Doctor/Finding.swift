/// One thing that the doctor has looked at.
struct Finding: Hashable, Sendable {
    /// How it stands.
    enum Grade: String, Sendable {
        case ok, skipped, warning, problem
    }

    let grade: Grade
    /// What was looked at, a word or two.
    let subject: String
    let text: String
    /// What to do; empty where there is nothing to be done.
    let advice: String

    static func ok(_ subject: String, _ text: String) -> Finding {
        Finding(grade: .ok, subject: subject, text: text, advice: "")
    }
    static func skipped(_ subject: String, _ text: String) -> Finding {
        Finding(grade: .skipped, subject: subject, text: text, advice: "")
    }
    static func warning(_ subject: String, _ text: String, _ advice: String) -> Finding {
        Finding(grade: .warning, subject: subject, text: text, advice: advice)
    }
    static func problem(_ subject: String, _ text: String, _ advice: String) -> Finding {
        Finding(grade: .problem, subject: subject, text: text, advice: advice)
    }

    /// One line, and one for what to do.
    var lines: String {
        func column(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        let line = column(grade.rawValue, 9) + column(subject, 14) + text
        return advice.isEmpty ? line : "\(line)\n\(column("", 23))→ \(advice)"
    }
}
