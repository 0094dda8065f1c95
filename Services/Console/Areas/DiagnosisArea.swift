import BackendCalls
import BusMessages
import Credentials
import Crypto
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Diagnosis logs: operators ask a device for its log, see how far it has come, and take it (spec, two-way §3).
///
/// A task is made in the database first, then the device is told by an ordinary push. When that push fails the task is
/// there all the same, and *Restart* tells the device once more.
struct DiagnosisArea: Sendable {
    /// UTF-16 units of a description.
    private static let descriptionUnits = 200
    /// Bytes of a log when nobody says anything else.
    private static let usualBytes = 5_000_000
    /// The end of the year 9999, up to which devices read times.
    private static let latest: Int64 = 253_402_300_800_000

    let database: Database
    let desk: ControlDesk
    let intake: PushIntake

    /// All of an instance, the newest first.
    struct List: Encodable, Sendable {
        let tasks: [DiagnosisItem]

        // For pages alone.
        let isEmpty: Bool
        let back: String
        let api: String
        let mayChange: Bool
        let levels: [Choice]
        let usualBytes: Int
        let bytesMaximum: Int

        private enum CodingKeys: String, CodingKey { case tasks }
    }

    /// A level that can be chosen.
    struct Choice: Sendable {
        let name: String
        let isUsual: Bool
    }

    private struct Input: Decodable {
        let deviceId: String
        let from: Int64
        let to: Int64
        var level: String?
        var network: String?
        var limitBytes: Int?
        var description: String?
    }

    private static let inputs = [
        RouteInput("deviceId", required: true, "Whose log it is."),
        RouteInput("from", .whole, required: true, "Milliseconds since 1970, by the device's clock."),
        RouteInput("to", .whole, required: true, "Likewise, excluded."),
        RouteInput("level", "The lowest level: \(DiagnosisRequest.levels.joined(separator: ", ")); absent: info."),
        RouteInput("network", "wifi or any; absent: wifi."),
        RouteInput("limitBytes", .whole, "Bytes that it may have, up to 20,000,000; absent: 5,000,000."),
        RouteInput("description", "Why, for people."),
    ]

    var routes: [Route] { looks + changes }

    private var looks: [Route] {
        let path = "/instances/{instance}/diagnosis"
        return [
            Route(
                method: .get, pattern: RoutePattern(path), access: .instance(.viewer), summary: "Diagnosis logs."
            ) { exchange throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "diagnosis", title: "title.diagnosis", tab: .devices,
                        instanceID: exchange.instanceID, content: try await list(exchange)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: .instance(.viewer),
                summary: "Logs that devices were asked for, the newest first.", example: AnswerExamples.diagnoses
            ) { exchange throws(ConsoleFault) in .json(try await list(exchange)) },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/{task}"), access: .instance(.viewer),
                summary: "One of them, with how far it has come.", example: AnswerExamples.diagnosis
            ) { exchange throws(ConsoleFault) in .json(DiagnosisItem(try await held(exchange), exchange.words)) },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/{task}/log"), access: .instance(.operations),
                summary: "The log itself, once it is whole; its SHA-256 is checked and in Repr-Digest."
            ) { exchange throws(ConsoleFault) in try await download(exchange) },
        ]
    }

    private var changes: [Route] {
        let path = "/api/v1/instances/{instance}/diagnosis"
        return [
            Route(
                method: .post, pattern: RoutePattern(path), access: .instance(.operations),
                summary: "Asks a device for its log.", inputs: Self.inputs, example: AnswerExamples.diagnosis
            ) { exchange throws(ConsoleFault) in try await create(exchange) },
            Route(
                method: .post, pattern: RoutePattern("\(path)/{task}/restart"), access: .instance(.operations),
                summary: "Starts a task over: what came before is gone.", example: AnswerExamples.diagnosis
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                _ = try desk.instance(exchange.instanceID)
                let query = DiagnosisStore.restart(
                    exchange.part("task"), of: exchange.instanceID, by: visitor.actor)
                guard let held = try await database.run(query) else {
                    throw .noSuch("diagnosis", exchange.part("task"))
                }
                try await tell(held, held.request.command(taskID: held.taskID, run: held.run), "\(held.run)", exchange)
                return .json(DiagnosisItem(held, exchange.words))
            },
            Route(
                method: .delete, pattern: RoutePattern("\(path)/{task}"), access: .instance(.operations),
                summary: "Deletes a task with its log, here and on the device."
            ) { exchange throws(ConsoleFault) in
                let visitor = try exchange.signedIn()
                let held = try await held(exchange)
                // Once it is gone nobody could tell the device any more.
                try await tell(
                    held, DiagnosisRequest.deletion(taskID: held.taskID, run: held.run), "\(held.run)-delete", exchange)
                _ = try await database.run(
                    DiagnosisStore.delete(held.taskID, of: held.instanceID, by: visitor.actor))
                return .done
            },
        ]
    }

    // MARK: What there is

    private func list(_ exchange: Exchange) async throws(ConsoleFault) -> List {
        let instance = try desk.instance(exchange.instanceID)
        let tasks = try await database.run(DiagnosisStore.list(of: instance.id))
        return List(
            tasks: tasks.map { DiagnosisItem($0, exchange.words) }, isEmpty: tasks.isEmpty,
            back: Paths.page(instance.id, "devices"), api: "/api/v1" + Paths.page(instance.id, "diagnosis"),
            mayChange: Access.instance(.operations).allows(exchange.visitor?.account, instance: instance.id),
            levels: DiagnosisRequest.levels.map { Choice(name: $0, isUsual: $0 == "info") },
            usualBytes: Self.usualBytes, bytesMaximum: Limits.diagnosisBytes)
    }

    private func held(_ exchange: Exchange) async throws(ConsoleFault) -> DiagnosisStore.Held {
        let instance = try desk.instance(exchange.instanceID)
        let taskID = exchange.part("task")
        let found = taskID.isEmpty ? [] : try await database.run(DiagnosisStore.list(of: instance.id, taskID: taskID))
        guard let held = found.first else { throw .noSuch("diagnosis", taskID) }
        return held
    }

    private func download(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let visitor = try exchange.signedIn()
        let held = try await held(exchange)
        guard held.state == .whole else { throw .noSuch("diagnosisLog", held.taskID) }
        var log: [UInt8] = []
        log.reserveCapacity(held.fileBytes)
        for number in 1...max(held.partCount, 1) {
            guard let part = try await database.run(DiagnosisStore.part(number, of: held)) else { throw .stale }
            log += part
        }
        let digest = SHA256.hash(data: log)
        guard HexText.of(digest) == held.fileSHA256,
            try await database.run(DiagnosisStore.noteDownload(held.taskID, of: held.instanceID, by: visitor.actor))
        else { throw .noSuch("diagnosisLog", held.taskID) }
        var answer = ConsoleAnswer.download(log, type: "application/octet-stream", name: held.file)
        answer.headers.append(("Repr-Digest", "sha-256=:\(Data(digest).base64EncodedString()):"))
        return answer
    }

    // MARK: Changes

    private func create(_ exchange: Exchange) async throws(ConsoleFault) -> ConsoleAnswer {
        let visitor = try exchange.signedIn()
        let instance = try desk.instance(exchange.instanceID)
        let input = try exchange.input(Input.self)
        let request = try Self.request(input)
        let (device, description) = (input.deviceId.trimmed, (input.description ?? "").trimmed)
        guard !device.isEmpty else { throw .wrong("deviceId", "fault.missing") }
        for (name, text, most) in [
            ("deviceId", device, Limits.linkTokenUnits), ("description", description, Self.descriptionUnits),
        ] {
            guard text.utf16.count <= most else { throw .wrong(name, "fault.longerThan", "\(most)") }
            guard !text.utf8.contains(0) else { throw .wrong(name, "fault.nul") }
        }
        try await makeConfigurations(of: instance.id, by: visitor)
        let taskID = HexText.of(RandomBytes.make(8))
        let query = DiagnosisStore.create(
            taskID, of: instance.id, for: DeviceID(device), request, description: description, by: visitor.actor)
        guard try await database.run(query) else {
            throw .refused("an instance has at most \(Limits.diagnosisTasks) diagnosis tasks: delete some")
        }
        guard let held = try await database.run(DiagnosisStore.list(of: instance.id, taskID: taskID)).first else {
            throw .noSuch("diagnosis", taskID)
        }
        try await tell(held, request.command(taskID: taskID, run: held.run), "\(held.run)", exchange)
        return .json(DiagnosisItem(held, exchange.words), status: 201)
    }

    private static func request(_ input: Input) throws(ConsoleFault) -> DiagnosisRequest {
        for (name, time) in [("from", input.from), ("to", input.to)] where !(0...latest).contains(time) {
            throw .wrong(name, "fault.wrongType")
        }
        guard input.from < input.to else { throw .wrong("to", "fault.notAfter") }
        let (level, network) = (input.level ?? "info", input.network ?? "wifi")
        for (name, word, words) in [
            ("level", level, DiagnosisRequest.levels), ("network", network, DiagnosisRequest.networks),
        ] where !words.contains(word) {
            throw .wrong(name, "fault.choice", words.joined(separator: ", "))
        }
        let bytes = input.limitBytes ?? usualBytes
        guard (1...Limits.diagnosisBytes).contains(bytes) else {
            throw .wrong("limitBytes", "fault.range", "1 – \(Limits.diagnosisBytes)")
        }
        return DiagnosisRequest(
            from: WallTime(milliseconds: input.from), to: WallTime(milliseconds: input.to), level: level,
            network: network, limitBytes: bytes)
    }

    /// Commands go to devices under one Sync ID of the service's own, and answers to their parts under another; both
    /// come with the first task.
    private func makeConfigurations(of instanceID: InstanceID, by visitor: Visitor) async throws(ConsoleFault) {
        for (bizType, description) in [
            (ReservedSyncID.results, "Results of operations"), (ReservedSyncID.diagnosis, "Diagnosis logs"),
        ] where desk.directory.configuration(instanceID, bizType) == nil {
            let configuration = SyncConfiguration(
                instanceID: instanceID, bizType: bizType, description: description, kind: .device,
                isMultiDevice: false, isPersistent: true, repush: .all, checksSession: false, isOnline: true
            ).bus
            let made = try await desk.change(by: visitor) { $0.createConfiguration = configuration }
            try desk.requireCopy(of: made)
        }
    }

    /// Pushes a command to a task's device; once, however often it is asked for.
    private func tell(
        _ held: DiagnosisStore.Held, _ command: String, _ suffix: String, _ exchange: Exchange
    ) async throws(ConsoleFault) {
        let call = PushInput.Call(
            bizType: ReservedSyncID.diagnosis.text, linkToken: held.deviceID.text,
            thirdMsgId: "diagnosis-\(held.taskID)-\(suffix)", payload: command, binaryPayload: nil, osType: nil,
            appMinVersion: nil, appMaxVersion: nil, validTimeEnd: nil)
        guard let body = try? JSONEncoder().encode(call) else { throw .notJSON }
        let answer = await intake.answer(
            scope: .single, instanceID: held.instanceID.text, body: Array(body), isDryRun: false)
        guard answer.isAttempted else { throw .storeAway }
        guard answer.code.isSuccess || answer.code == .duplicatedBizID else {
            throw answer.code == .systemError ? .notKnown : PushArea.fault(answer)
        }
    }
}
