/// One result of the doctor's checks.
struct Finding: Hashable, Sendable {
    /// Severity of a finding.
    enum Grade: String, Sendable {
        case ok, skipped, warning, problem
    }

    let grade: Grade
    /// Subject of the check, in one or two words.
    let subject: String
    let text: String
    /// The remedy. Empty if nothing is to be done.
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

    /// One line, and a second line for the remedy.
    var lines: String {
        func column(_ text: String, _ width: Int) -> String {
            text + String(repeating: " ", count: max(1, width - text.count))
        }
        let line = column(grade.rawValue, 9) + column(subject, 14) + text
        return advice.isEmpty ? line : "\(line)\n\(column("", 23))→ \(advice)"
    }
}
