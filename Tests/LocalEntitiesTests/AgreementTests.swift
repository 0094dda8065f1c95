import Foundation
import MobileSync
import Testing

@testable import LocalEntities

/// A device and a backend that act at random, with lost answers, restarts, outages and repeated data in between.
@Suite("Entities: agreement") struct AgreementTests {
    private struct Scenario {
        let file: StoreFile
        var store: EntityStore
        var backend = FakeBackend()
        var generator: SeededGenerator
        /// The number of oplogs that the device has received, by type.
        var position: [String: Int] = [:]
        /// The number of operations that the backend has answered.
        var answered = 0
        /// Answers in transit, in order.
        var answers: [SyncOperationResult] = []
        /// The last title that the app wrote; nil: deleted.
        var titles: [String: String?] = [:]
        let hasOthers: Bool
    }

    private enum Step: CaseIterable {
        case create, createNote, update, delete, submit, submitAll, answer, deliverAnswer, deliverOplogs, repeatOplogs,
            restart,
            outage, cancel, other
    }

    private func randomKey(_ scenario: inout Scenario) -> String {
        "i\(Int.random(in: 0..<6, using: &scenario.generator))"
    }

    private func perform(_ step: Step, _ scenario: inout Scenario) async throws {
        let store = scenario.store
        let key = randomKey(&scenario)
        let title = "t\(Int.random(in: 0..<1_000, using: &scenario.generator))"
        switch step {
        case .create:
            guard try store.findByPrimaryKey("Incident", .text(key)) == nil else { return }
            try store.createIncident(key, title: title)
            scenario.titles[key] = title
        case .createNote:
            let note = "n\(Int.random(in: 0..<9, using: &scenario.generator))"
            guard try store.findByPrimaryKey("Note", .text(note)) == nil,
                try store.findByPrimaryKey("Incident", .text(key)) != nil
            else { return }
            try store.createNote(note, of: key)
        case .update:
            guard var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try row.set("title", to: .text(title))
            try store.update(&row)
            scenario.titles[key] = title
        case .delete:
            guard var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try store.delete(&row)
            scenario.titles[key] = .some(nil)
        case .submit:
            guard var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try? await store.submitPending(&row)
        case .submitAll: try? await store.submitPendingOperations()
        case .cancel:
            guard scenario.hasOthers, var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try? await store.cancelPending(&row)
        case .answer: try answer(&scenario, accepts: Int.random(in: 0..<4, using: &scenario.generator) > 0)
        case .deliverAnswer: try await deliverAnswer(&scenario)
        case .deliverOplogs: try deliverOplogs(&scenario, count: Int.random(in: 1...12, using: &scenario.generator))
        case .repeatOplogs: try repeatOplogs(&scenario)
        case .restart:
            scenario.store = try scenario.file.open()
            try? await scenario.store.start()
        case .outage: scenario.file.submitter.isDown = Bool.random(using: &scenario.generator)
        case .other:
            guard scenario.hasOthers else { return }
            if Bool.random(using: &scenario.generator) {
                try scenario.backend.set("Incident", key, ["title": .text("other \(title)")])
            } else {
                try scenario.backend.remove("Incident", key)
            }
        }
    }

    private func answer(_ scenario: inout Scenario, accepts: Bool) throws {
        let waiting = scenario.file.submitter.operations
        guard scenario.answered < waiting.count else { return }
        let operation = waiting[scenario.answered]
        scenario.answered += 1
        scenario.file.submitter.send([operation.id])
        scenario.answers.append(try scenario.backend.answer(operation, accepts: accepts))
    }

    private func deliverAnswer(_ scenario: inout Scenario) async throws {
        guard let result = scenario.answers.first else { return }
        // Stored, but the confirmation is lost, so the answer comes again.
        try? await scenario.store.result(result)
        if Bool.random(using: &scenario.generator) { try? await scenario.store.result(result) }
        scenario.answers.removeFirst()
    }

    private func deliverOplogs(_ scenario: inout Scenario, count: Int) throws {
        for type in ["Incident", "Note"] {
            let all = scenario.backend.oplogs[type] ?? []
            let from = scenario.position[type] ?? 0
            let upto = min(all.count, from + count)
            try scenario.store.importOplogs(Array(all[from..<upto]), of: type)
            scenario.position[type] = upto
        }
    }

    /// A crash before the confirmation: some oplogs come again.
    private func repeatOplogs(_ scenario: inout Scenario) throws {
        for type in ["Incident", "Note"] {
            let upto = scenario.position[type] ?? 0
            let all = scenario.backend.oplogs[type] ?? []
            try scenario.store.importOplogs(Array(all[max(0, upto - 3)..<upto]), of: type)
        }
    }

    /// From here on nothing is lost.
    private func finish(_ scenario: inout Scenario) async throws {
        scenario.file.submitter.isDown = false
        scenario.store = try scenario.file.open()
        try await scenario.store.start()
        for _ in 0..<20 {
            try await scenario.store.submitPendingOperations()
            while scenario.answered < scenario.file.submitter.operations.count { try answer(&scenario, accepts: true) }
            while !scenario.answers.isEmpty { try await deliverAnswer(&scenario) }
            try deliverOplogs(&scenario, count: .max / 2)
            if try isSettled(scenario.store) { return }
        }
    }

    /// Whether every change has its result and none is left.
    private func isSettled(_ store: EntityStore) throws -> Bool {
        try !store.hasPendingOperations() && ["Incident", "Note"].allSatisfy { try store.pendingRows($0).isEmpty }
    }

    private func titles(_ rows: [Entity], _ name: String) -> [String: String] {
        Dictionary(uniqueKeysWithValues: rows.map { ($0.key.asText ?? "", $0.fields[name]?.asText ?? "") })
    }

    @Test(
        "at the end a device and its backend have the same rows, in spite of all faults, and no edit is lost",
        arguments: [true, false])
    func agreement(hasOthers: Bool) async throws {
        for _ in 0..<60 {
            let seed = UInt64.random(in: 0...UInt64.max)
            let file = StoreFile()
            var scenario = Scenario(
                file: file, store: try file.open(), generator: SeededGenerator(seed: seed), hasOthers: hasOthers)
            for _ in 0..<120 {
                // The other tests of the process also need this thread.
                await Task.yield()
                let step = Step.allCases.randomElement(using: &scenario.generator) ?? .restart
                try await perform(step, &scenario)
            }
            try await finish(&scenario)
            #expect(try isSettled(scenario.store), "seed \(seed)")
            let incidents = titles(try scenario.store.findAll("Incident"), "title")
            let expected = (scenario.backend.rows["Incident"] ?? [:]).compactMapValues { $0["title"]?.string }
            #expect(incidents == expected, "seed \(seed)")
            let notes = titles(try scenario.store.findAll("Note"), "incidentID")
            #expect(
                notes == (scenario.backend.rows["Note"] ?? [:]).compactMapValues { $0["incidentID"]?.string },
                "seed \(seed)")
            if !hasOthers { #expect(incidents == scenario.titles.compactMapValues { $0 }, "seed \(seed)") }
            #expect(
                try scenario.store.logRecords(LogFilter(level: .error)).allSatisfy { $0.code == 409 }, "seed \(seed)")
        }
    }
}
