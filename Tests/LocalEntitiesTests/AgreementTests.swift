import Foundation
import MobileSync
import Testing

@testable import LocalEntities

/// A device and a backend that work at random, with lost answers, restarts, outages and repeated data in between.
@Suite("Entities: agreement") struct AgreementTests {
    private struct World {
        let file: StoreFile
        var store: EntityStore
        var backend = FakeBackend()
        var generator: SeededGenerator
        /// Oplogs that the device has taken, by type.
        var position: [String: Int] = [:]
        /// Operations that the backend has answered.
        var answered = 0
        /// Answers on their way, in order.
        var answers: [SyncOperationResult] = []
        /// What the app wrote last; nil: deleted.
        var titles: [String: String?] = [:]
        let hasOthers: Bool
    }

    private enum Step: CaseIterable {
        case create, createNote, update, delete, submit, submitAll, answer, takeAnswer, takeOplogs, repeatOplogs,
            restart,
            outage, cancel, other
    }

    private func randomKey(_ world: inout World) -> String { "i\(Int.random(in: 0..<6, using: &world.generator))" }

    private func perform(_ step: Step, _ world: inout World) async throws {
        let store = world.store
        let key = randomKey(&world)
        let title = "t\(Int.random(in: 0..<1_000, using: &world.generator))"
        switch step {
        case .create:
            guard try store.findByPrimaryKey("Incident", .text(key)) == nil else { return }
            try store.createIncident(key, title: title)
            world.titles[key] = title
        case .createNote:
            let note = "n\(Int.random(in: 0..<9, using: &world.generator))"
            guard try store.findByPrimaryKey("Note", .text(note)) == nil,
                try store.findByPrimaryKey("Incident", .text(key)) != nil
            else { return }
            try store.createNote(note, of: key)
        case .update:
            guard var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try row.set("title", to: .text(title))
            try store.update(&row)
            world.titles[key] = title
        case .delete:
            guard var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try store.delete(&row)
            world.titles[key] = .some(nil)
        case .submit:
            guard var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try? await store.submitPending(&row)
        case .submitAll: try? await store.submitPendingOperations()
        case .cancel:
            guard world.hasOthers, var row = try store.findByPrimaryKey("Incident", .text(key)) else { return }
            try? await store.cancelPending(&row)
        case .answer: try answer(&world, accepts: Int.random(in: 0..<4, using: &world.generator) > 0)
        case .takeAnswer: try await takeAnswer(&world)
        case .takeOplogs: try takeOplogs(&world, count: Int.random(in: 1...12, using: &world.generator))
        case .repeatOplogs: try repeatOplogs(&world)
        case .restart:
            world.store = try world.file.open()
            try? await world.store.start()
        case .outage: world.file.submitter.isDown = Bool.random(using: &world.generator)
        case .other:
            guard world.hasOthers else { return }
            if Bool.random(using: &world.generator) {
                try world.backend.set("Incident", key, ["title": .text("other \(title)")])
            } else {
                try world.backend.remove("Incident", key)
            }
        }
    }

    private func answer(_ world: inout World, accepts: Bool) throws {
        let waiting = world.file.submitter.operations
        guard world.answered < waiting.count else { return }
        let operation = waiting[world.answered]
        world.answered += 1
        world.file.submitter.send([operation.id])
        world.answers.append(try world.backend.answer(operation, accepts: accepts))
    }

    private func takeAnswer(_ world: inout World) async throws {
        guard let result = world.answers.first else { return }
        // Taken, and the answer comes once more, as the confirmation was lost.
        try? await world.store.result(result)
        if Bool.random(using: &world.generator) { try? await world.store.result(result) }
        world.answers.removeFirst()
    }

    private func takeOplogs(_ world: inout World, count: Int) throws {
        for type in ["Incident", "Note"] {
            let all = world.backend.oplogs[type] ?? []
            let from = world.position[type] ?? 0
            let upto = min(all.count, from + count)
            try world.store.importOplogs(Array(all[from..<upto]), of: type)
            world.position[type] = upto
        }
    }

    /// A crash before the confirmation: some come again.
    private func repeatOplogs(_ world: inout World) throws {
        for type in ["Incident", "Note"] {
            let upto = world.position[type] ?? 0
            let all = world.backend.oplogs[type] ?? []
            try world.store.importOplogs(Array(all[max(0, upto - 3)..<upto]), of: type)
        }
    }

    /// Everything gets through from here on.
    private func finish(_ world: inout World) async throws {
        world.file.submitter.isDown = false
        world.store = try world.file.open()
        try await world.store.start()
        for _ in 0..<20 {
            try await world.store.submitPendingOperations()
            while world.answered < world.file.submitter.operations.count { try answer(&world, accepts: true) }
            while !world.answers.isEmpty { try await takeAnswer(&world) }
            try takeOplogs(&world, count: .max / 2)
            if try !world.store.hasPendingOperations() { return }
        }
    }

    private func titles(_ rows: [Entity], _ name: String) -> [String: String] {
        Dictionary(uniqueKeysWithValues: rows.map { ($0.key.asText ?? "", $0.fields[name]?.asText ?? "") })
    }

    @Test(
        "in the end a device and its backend have the same rows, whatever happened, and no edit is lost",
        arguments: [true, false])
    func agreement(hasOthers: Bool) async throws {
        for _ in 0..<60 {
            let seed = UInt64.random(in: 0...UInt64.max)
            let file = StoreFile()
            var world = World(
                file: file, store: try file.open(), generator: SeededGenerator(seed: seed), hasOthers: hasOthers)
            for _ in 0..<120 {
                let step = Step.allCases.randomElement(using: &world.generator) ?? .restart
                try await perform(step, &world)
            }
            try await finish(&world)
            #expect(try !world.store.hasPendingOperations(), "seed \(seed)")
            let incidents = titles(try world.store.findAll("Incident"), "title")
            let expected = (world.backend.rows["Incident"] ?? [:]).compactMapValues { $0["title"]?.string }
            #expect(incidents == expected, "seed \(seed)")
            let notes = titles(try world.store.findAll("Note"), "incidentID")
            #expect(
                notes == (world.backend.rows["Note"] ?? [:]).compactMapValues { $0["incidentID"]?.string },
                "seed \(seed)")
            if !hasOthers { #expect(incidents == world.titles.compactMapValues { $0 }, "seed \(seed)") }
            #expect(try world.store.logRecords(LogFilter(level: .error)).allSatisfy { $0.code == 409 }, "seed \(seed)")
        }
    }
}
