import BackendCalls
import BusMessages
import Credentials
import Crypto
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Diagnosis logs: operators request a device's log, watch its upload, and download it (SVC6).
///
/// A task is stored in the database first; then a push carries the command to the device. When the push fails, the task
/// exists all the same, and *Restart* pushes the command again.
struct DiagnosisRoutes: Sendable {
    /// The longest description, in UTF-16 units.
    private static let descriptionUnits = 200
    /// The default limit of a log, in bytes.
    private static let usualBytes = 5_000_000
    /// The end of the year 9999: the latest time that devices can read.
    private static let latest: Int64 = 253_402_300_800_000

    let database: Database
    let control: ControlService
    let intake: PushIntake

    /// All tasks of an instance, the newest first.
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

    /// A log level for the form.
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
        RouteInput("deviceId", required: true, "The device of the log."),
        RouteInput("from", .whole, required: true, "Milliseconds since 1970, by the device's clock."),
        RouteInput("to", .whole, required: true, "The end, in the same form; excluded."),
        RouteInput("level", "The lowest level: \(DiagnosisRequest.levels.joined(separator: ", ")); absent: info."),
        RouteInput("network", "wifi or any; absent: wifi."),
        RouteInput("limitBytes", .whole, "The largest size in bytes, up to 20,000,000; absent: 5,000,000."),
        RouteInput("description", "The purpose, for people."),
    ]

    var routes: [Route] { readRoutes + changeRoutes }

    private var readRoutes: [Route] {
        let path = "/instances/{instance}/diagnosis"
        return [
            Route(
                method: .get, pattern: RoutePattern(path), access: .instance(.viewer), summary: "Diagnosis logs."
            ) { request throws(ConsoleFault) in
                .page(
                    PageContent(
                        template: "diagnosis", title: "title.diagnosis", tab: .devices,
                        instanceID: request.instanceID, content: try await list(request)))
            },
            Route(
                method: .get, pattern: RoutePattern("/api/v1" + path), access: .instance(.viewer),
                summary: "Requested device logs, the newest first.", example: AnswerExamples.diagnoses
            ) { request throws(ConsoleFault) in .json(try await list(request)) },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/{task}"), access: .instance(.viewer),
                summary: "One requested log, with its progress.", example: AnswerExamples.diagnosis
            ) { request throws(ConsoleFault) in .json(DiagnosisItem(try await task(request), request.words)) },
            Route(
                method: .get, pattern: RoutePattern("/api/v1\(path)/{task}/log"), access: .instance(.operations),
                summary: "The complete log; its SHA-256 is checked, and returned in Repr-Digest."
            ) { request throws(ConsoleFault) in try await download(request) },
        ]
    }

    private var changeRoutes: [Route] {
        let path = "/api/v1/instances/{instance}/diagnosis"
        return [
            Route(
                method: .post, pattern: RoutePattern(path), access: .instance(.operations),
                summary: "Requests the log of a device.", inputs: Self.inputs, example: AnswerExamples.diagnosis
            ) { request throws(ConsoleFault) in try await create(request) },
            Route(
                method: .post, pattern: RoutePattern("\(path)/{task}/restart"), access: .instance(.operations),
                summary: "Starts a task again, and deletes the parts received so far.",
                example: AnswerExamples.diagnosis
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                _ = try control.instance(request.instanceID)
                let query = DiagnosisStore.restart(
                    request.part("task"), of: request.instanceID, by: principal.actor)
                guard let task = try await database.run(query) else {
                    throw .noSuch("diagnosis", request.part("task"))
                }
                try await push(task, task.request.command(taskID: task.taskID, run: task.run), "\(task.run)", request)
                return .json(DiagnosisItem(task, request.words))
            },
            Route(
                method: .delete, pattern: RoutePattern("\(path)/{task}"), access: .instance(.operations),
                summary: "Deletes a task with its log, here and on the device."
            ) { request throws(ConsoleFault) in
                let principal = try request.signedIn()
                let task = try await task(request)
                // The device is notified first: without the task, a failed push could not be repeated.
                try await push(
                    task, DiagnosisRequest.deletion(taskID: task.taskID, run: task.run), "\(task.run)-delete", request)
                _ = try await database.run(
                    DiagnosisStore.delete(task.taskID, of: task.instanceID, by: principal.actor))
                return .done
            },
        ]
    }

    // MARK: Reading

    private func list(_ request: ConsoleRequest) async throws(ConsoleFault) -> List {
        let instance = try control.instance(request.instanceID)
        let tasks = try await database.run(DiagnosisStore.list(of: instance.id))
        return List(
            tasks: tasks.map { DiagnosisItem($0, request.words) }, isEmpty: tasks.isEmpty,
            back: Paths.page(instance.id, "devices"), api: "/api/v1" + Paths.page(instance.id, "diagnosis"),
            mayChange: Access.instance(.operations).allows(request.principal?.account, instance: instance.id),
            levels: DiagnosisRequest.levels.map { Choice(name: $0, isUsual: $0 == "info") },
            usualBytes: Self.usualBytes, bytesMaximum: Limits.diagnosisBytes)
    }

    private func task(_ request: ConsoleRequest) async throws(ConsoleFault) -> DiagnosisStore.Held {
        let instance = try control.instance(request.instanceID)
        let taskID = request.part("task")
        let found = taskID.isEmpty ? [] : try await database.run(DiagnosisStore.list(of: instance.id, taskID: taskID))
        guard let task = found.first else { throw .noSuch("diagnosis", taskID) }
        return task
    }

    private func download(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let principal = try request.signedIn()
        let task = try await task(request)
        guard task.state == .whole else { throw .noSuch("diagnosisLog", task.taskID) }
        var log: [UInt8] = []
        log.reserveCapacity(task.fileBytes)
        for number in 1...max(task.partCount, 1) {
            guard let part = try await database.run(DiagnosisStore.part(number, of: task)) else { throw .stale }
            log += part
        }
        let digest = SHA256.hash(data: log)
        guard HexText.of(digest) == task.fileSHA256,
            try await database.run(DiagnosisStore.recordDownload(task.taskID, of: task.instanceID, by: principal.actor))
        else { throw .noSuch("diagnosisLog", task.taskID) }
        var answer = ConsoleAnswer.download(log, type: "application/octet-stream", name: task.file)
        answer.headers.append(("Repr-Digest", "sha-256=:\(Data(digest).base64EncodedString()):"))
        return answer
    }

    // MARK: Changes

    private func create(_ request: ConsoleRequest) async throws(ConsoleFault) -> ConsoleAnswer {
        let principal = try request.signedIn()
        let instance = try control.instance(request.instanceID)
        let input = try request.input(Input.self)
        let diagnosisRequest = try Self.diagnosisRequest(input)
        let (device, description) = (input.deviceId.trimmed, (input.description ?? "").trimmed)
        guard !device.isEmpty else { throw .wrong("deviceId", "fault.missing") }
        for (name, text, most) in [
            ("deviceId", device, Limits.linkTokenUnits), ("description", description, Self.descriptionUnits),
        ] {
            guard text.utf16.count <= most else { throw .wrong(name, "fault.longerThan", "\(most)") }
            guard !text.utf8.contains(0) else { throw .wrong(name, "fault.nul") }
        }
        try await makeConfigurations(of: instance.id, by: principal)
        let taskID = HexText.of(RandomBytes.make(8))
        let query = DiagnosisStore.create(
            taskID, of: instance.id, for: DeviceID(device), diagnosisRequest, description: description,
            by: principal.actor)
        guard try await database.run(query) else {
            throw .refused("an instance has at most \(Limits.diagnosisTasks) diagnosis tasks: delete some")
        }
        guard let task = try await database.run(DiagnosisStore.list(of: instance.id, taskID: taskID)).first else {
            throw .noSuch("diagnosis", taskID)
        }
        try await push(task, diagnosisRequest.command(taskID: taskID, run: task.run), "\(task.run)", request)
        return .json(DiagnosisItem(task, request.words), status: 201)
    }

    private static func diagnosisRequest(_ input: Input) throws(ConsoleFault) -> DiagnosisRequest {
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

    /// Creates the two reserved configurations with the first task: commands go to devices under one Sync ID, and the
    /// replies to log parts under the other.
    private func makeConfigurations(of instanceID: InstanceID, by principal: RequestPrincipal)
        async throws(ConsoleFault)
    {
        for (bizType, description) in [
            (ReservedSyncID.results, "Results of operations"), (ReservedSyncID.diagnosis, "Diagnosis logs"),
        ] where control.directory.configuration(instanceID, bizType) == nil {
            let configuration = SyncConfiguration(
                instanceID: instanceID, bizType: bizType, description: description, kind: .device,
                isMultiDevice: false, isPersistent: true, repush: .all, checksSession: false, isOnline: true
            ).bus
            let made = try await control.change(by: principal) { $0.createConfiguration = configuration }
            try control.requireCopy(of: made)
        }
    }

    /// Pushes a command to the device of a task. The suffix makes the push idempotent.
    private func push(
        _ task: DiagnosisStore.Held, _ command: String, _ suffix: String, _ request: ConsoleRequest
    ) async throws(ConsoleFault) {
        let call = PushInput.Call(
            bizType: ReservedSyncID.diagnosis.text, linkToken: task.deviceID.text,
            thirdMsgId: "diagnosis-\(task.taskID)-\(suffix)", payload: command, binaryPayload: nil, osType: nil,
            appMinVersion: nil, appMaxVersion: nil, validTimeEnd: nil)
        guard let body = try? JSONEncoder().encode(call) else { throw .notJSON }
        let answer = await intake.answer(
            scope: .single, instanceID: task.instanceID.text, body: Array(body), isDryRun: false)
        guard answer.isAttempted else { throw .storeAway }
        guard answer.code.isSuccess || answer.code == .duplicatedBizID else {
            throw answer.code == .systemError ? .notKnown : PushRoutes.fault(answer)
        }
    }
}
