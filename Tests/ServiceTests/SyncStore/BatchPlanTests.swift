import PostgreSQL
import SyncStore
import Testing

@Suite("The plan of a batch") struct BatchPlanTests {
    /// A row of a channel.
    private struct Row: Hashable {
        let channel: String
        let number: Int

        init(_ channel: String, _ number: Int) { (self.channel, self.number) = (channel, number) }
    }

    private static func refusal(_ sqlState: String, mayRetry: Bool = false) -> PostgresError {
        PostgresError(code: .server(sqlState: sqlState), message: "", mayRetry: mayRetry)
    }

    private static let locked = refusal("55P03", mayRetry: true)
    private static let unknown = PostgresError(code: .outcomeUnknown, message: "", mayRetry: true)

    /// The outcomes of the rows, in their order in time.
    private struct Outcome {
        var stored: [Row] = []
        var refused: [Row] = []
        var failed: [Row] = []
        var attempts: [[Row]] = []
    }

    /// Executes the plan. `database` returns the error of an attempt, and the locked channels.
    private static func perform(
        _ rows: [Row], isIdempotent: Bool = false, mayRepeat: Bool = true,
        _ database: (_ part: [Row], _ attempt: Int) -> (PostgresError, locked: Set<String>)?
    ) -> Outcome {
        var outcome = Outcome()
        var plan = BatchPlan(rows, isIdempotent: isIdempotent) { $0.channel }
        while let step = plan.next() {
            switch step {
            case .store(let part):
                outcome.attempts.append(part)
                if let (error, locked) = database(part, outcome.attempts.count) {
                    plan.failed(with: error, mayRepeat: mayRepeat, locked: locked)
                } else {
                    outcome.stored += part
                    plan.stored()
                }
            case .refuse(let row, _): outcome.refused.append(row)
            case .fail(let part, _): outcome.failed += part
            }
        }
        return outcome
    }

    @Test(
        "only a value is a reason to halve",
        arguments: [
            ("22021", false, BatchErrorAction.halve), ("23514", false, .halve), ("54000", false, .halve),
            ("55P03", true, .repeatWhole), ("40P01", true, .repeatWhole), ("57014", true, .repeatWhole),
            ("40001", true, .repeatWhole), ("53200", true, .repeatWhole), ("42501", false, .fail),
            ("XX000", false, .fail),
        ])
    func remedies(sqlState: String, mayRetry: Bool, remedy: BatchErrorAction) {
        #expect(Self.refusal(sqlState, mayRetry: mayRetry).batchRemedy == remedy)
        #expect(Self.unknown.batchRemedy == .fail)
    }

    @Test("D2: a lock that is held for a moment does not let a later row of a channel before an earlier one")
    func heldForAMoment() {
        let rows = [Row("a", 1), Row("a", 2), Row("b", 3)]
        // All rows are locked for the first two attempts.
        let outcome = Self.perform(rows) { _, attempt in attempt <= 2 ? (Self.locked, locked: []) : nil }
        #expect(outcome.attempts == [rows, rows, rows] && outcome.stored == rows && outcome.failed.isEmpty)
        let late = Self.perform(rows, mayRepeat: false) { _, attempt in attempt <= 1 ? (Self.locked, locked: []) : nil }
        #expect(late.failed == rows && late.stored.isEmpty, "without time the whole batch fails")
    }

    @Test("a channel that is held locked fails alone, after one attempt; the others are stored")
    func oneChannelLocked() {
        let rows = (0..<99).map { Row("c\($0 % 9)", $0) }
        let outcome = Self.perform(rows) { part, _ in
            part.contains { $0.channel == "c4" } ? (Self.locked, locked: ["c4"]) : nil
        }
        #expect(outcome.attempts.count == 2)
        #expect(outcome.failed == rows.filter { $0.channel == "c4" })
        #expect(outcome.stored == rows.filter { $0.channel != "c4" })
    }

    @Test("an impossible value is refused alone, and later rows of its channel are stored in order")
    func poison() {
        let rows = (0..<100).map { Row("c\($0 % 3)", $0) }
        let outcome = Self.perform(rows) { part, _ in
            part.contains { $0.number == 41 } ? (Self.refusal("22021"), locked: []) : nil
        }
        #expect(outcome.refused == [rows[41]] && outcome.failed.isEmpty)
        #expect(outcome.stored == rows.filter { $0.number != 41 })
        #expect(outcome.attempts.count < 16)
    }

    @Test("once a row of a channel has failed, later rows of that channel fail, in later parts too")
    func laterRowsFail() {
        let rows = [Row("a", 0), Row("b", 1), Row("a", 2), Row("c", 3)]
        // The value of row 3 halves the batch, then the connection is lost during the first half.
        let outcome = Self.perform(rows) { part, _ in
            if part.contains(rows[3]), part.count > 1 { return (Self.refusal("22021"), locked: []) }
            return part.contains(rows[0]) ? (Self.unknown, locked: []) : nil
        }
        #expect(outcome.failed == [rows[0], rows[1], rows[2]] && outcome.stored == [rows[3]])
    }

    @Test("idempotent rows are also repeated after an unknown outcome")
    func idempotent() {
        let rows = [Row("a", 0), Row("b", 1)]
        let outcome = Self.perform(rows, isIdempotent: true) { _, attempt in
            attempt == 1 ? (Self.unknown, locked: []) : nil
        }
        #expect(outcome.stored == rows && outcome.failed.isEmpty)
        #expect(Self.perform(rows) { _, _ in (Self.unknown, locked: []) }.failed == rows)
    }
}
