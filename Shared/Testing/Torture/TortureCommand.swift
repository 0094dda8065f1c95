package import ArgumentParser
import AsyncHTTPClient
import Foundation
import Glibc
import ToolSupport
import UnixSignals

/// `mssctl torture`: injects faults into a separate local stack under load, and checks every invariant.
package struct TortureCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "torture",
        abstract: "Starts a separate local stack, injects faults under load, and checks the guarantees of delivery.",
        discussion: """
            Starts PostgreSQL, RabbitMQ and two of each process that scales, in a separate folder, with a fault proxy \
            on every connection between them. Devices are real clients with local stores. The command kills, pauses \
            and restarts processes, cuts, silences, delays and garbles connections, and deletes the broker's data. \
            It checks all responses to backends and all hand-outs to apps during the run. Run it in the checkout. \
            The same seed draws the same faults. If a guarantee is violated, the exit code is 1.
            """)

    @Option(help: "Minutes of load and faults.")
    var minutes = 10
    @Option(help: "Rounds of faults that are injected in any case, even if they take longer than the minutes.")
    var rounds = 0
    @Option(help: "Seed for faults, pushes and device actions; random when absent.")
    var seed: UInt64?
    @Option(help: "Total number of devices; a multiple of \(TortureCommand.devicesStep).")
    var devices = 400
    @Option(help: "Pushes per second.")
    var rate = 80
    @Option(help: "Device operations per second.")
    var operations = 20
    @Option(help: "Inject only kinds of faults with one of these texts in the name, comma separated.")
    var only: String?
    @Option(help: "Folder for the report, the history and the logs; a new temporary folder when absent.")
    var output: String?
    @Option(help: "Build of the services: release or debug; the tool's own build when absent.")
    var build: String?
    @Option(
        help: """
            File with the command of the Java client's test programs, .build-java/command: some phones then have a \
            Java app. Without it, all apps have the Swift client.
            """)
    var java: String?
    @Flag(help: "List the kinds of faults and exit.")
    var list = false

    private static let devicesStep = TortureWorld.instances.count * TortureWorld.devicesPerUser

    package func validate() throws {
        guard minutes > 0, rounds >= 0, rate > 0, operations >= 0 else {
            throw ValidationError("--minutes and --rate take 1 or more, --rounds and --operations 0 or more.")
        }
        guard devices >= 2 * Self.devicesStep, devices.isMultiple(of: Self.devicesStep) else {
            throw ValidationError(
                "--devices takes a multiple of \(Self.devicesStep) from \(2 * Self.devicesStep) on: \(Self.shape).")
        }
        guard list || FileManager.default.isExecutableFile(atPath: "deploy/up") else {
            throw ValidationError("There is no deploy/up here: run it in the folder of the checkout.")
        }
        _ = try kinds()
        _ = try javaCommand()
    }

    private static let shape =
        "\(TortureWorld.instances.count) tenants whose users have \(TortureWorld.devicesPerUser) devices each"

    private func kinds() throws -> [FaultKind] {
        // Only root can mount a file system.
        let possible = FaultKind.all.filter { geteuid() == 0 || !$0.needsDisk }
        guard let parts = only?.split(separator: ",").map(String.init) else { return possible }
        let found = possible.filter { kind in parts.contains { kind.name.contains($0) } }
        if found.isEmpty { throw ValidationError("no kind of fault matches --only; --list shows them all") }
        return found
    }

    private func javaCommand() throws -> [String]? {
        guard let java else { return nil }
        guard let words = try? String(contentsOfFile: java, encoding: .utf8).split(separator: "\n"), !words.isEmpty
        else {
            throw ValidationError("\(java) has no command: build the Java client with Tests/JavaTests/run.sh build")
        }
        return words.map(String.init)
    }

    package func run() async throws {
        if list { return print(FaultKind.all.map(\.name).joined(separator: "\n")) }
        try OpenFiles.raise(to: devices * 7 + 500)
        // A write to a Java app that has just been killed then fails instead of ending this process.
        signal(SIGPIPE, SIG_IGN)
        let kinds = try kinds()
        if kinds.contains(where: \.needsDisk) { try MountNamespace.enter() }
        let plan = TortureRun.Plan(
            seed: seed ?? UInt64.random(in: 0..<1_000_000_000), minutes: minutes, rounds: rounds, devices: devices,
            rate: rate, operations: operations, kinds: kinds, java: java)
        let folder = try makeFolder()
        Self.say("history, logs and report go to \(folder.path)")
        let signals = await UnixSignalsSequence(trapping: [.sigint, .sigterm])
        let history = try TortureHistory(path: folder.appending(path: "history.jsonl").path)
        let tenant = try await TortureTenant.start(history, seed: plan.seed)
        let stack = try await TortureStack.start(
            in: folder.appending(path: "stack"), build: build ?? Self.ownBuild,
            hasDisk: kinds.contains(where: \.needsDisk), operationsPort: tenant.port)
        let report: TortureReport?
        do {
            report = try await Self.untilSignalled(signals) { try await perform(plan, on: stack, history, folder) }
        } catch {
            await stack.stop()
            throw error
        }
        await stack.stop()
        guard let report else { throw ExitCode(130) }
        print(report.text)
        try report.text.write(to: folder.appending(path: "report.md"), atomically: true, encoding: .utf8)
        if !report.isPassed { throw ExitCode.failure }
    }

    private func perform(
        _ plan: TortureRun.Plan, on stack: TortureStack, _ history: TortureHistory, _ folder: URL
    ) async throws -> TortureReport {
        // In memory if possible: real devices do not share a disk, least of all PostgreSQL's.
        let memory = "/dev/shm"
        let parent = FileManager.default.isWritableFile(atPath: memory) ? URL(filePath: memory) : folder
        let devices = parent.appending(path: "mss-torture-devices-\(getpid())")
        try FileManager.default.createDirectory(at: devices, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: devices) }
        let world = TortureWorld(
            stack: stack, history: history, devices: plan.devices, javaCommand: try javaCommand())
        let controlFile = folder.appending(path: "torture.json")
        try world.controlFile().write(to: controlFile, atomically: true, encoding: .utf8)
        try await stack.apply(controlFile)
        do {
            let report = try await TortureRun(plan: plan, world: world, folder: devices, say: Self.say).run()
            try await world.api.client.shutdown()
            return report
        } catch {
            try? await world.api.client.shutdown()
            throw error
        }
    }

    /// The result of the body. The value is nil if a signal comes first.
    private static func untilSignalled<Outcome: Sendable>(
        _ signals: UnixSignalsSequence, _ body: @escaping @Sendable () async throws -> Outcome
    ) async throws -> Outcome? {
        try await withThrowingTaskGroup(of: Outcome?.self) { group in
            group.addTask { try await body() }
            group.addTask {
                for await _ in signals { return nil }
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }

    private func makeFolder() throws -> URL {
        let folder =
            output.map { URL(filePath: $0) }
            ?? FileManager.default.temporaryDirectory.appending(path: "mss-torture-\(UUID().uuidString.prefix(8))")
        guard !FileManager.default.fileExists(atPath: folder.appending(path: "stack").path) else {
            throw ValidationError("\(folder.path) has a run already; name another with --output")
        }
        try FileManager.default.createDirectory(at: folder.appending(path: "stack"), withIntermediateDirectories: true)
        return folder
    }

    private static var ownBuild: String { ProcessTree.isDebug(Int(getpid())) ? "debug" : "release" }

    /// Writes one line to standard error without buffering.
    private static func say(_ text: String) {
        let time = Date().formatted(.iso8601.time(includingFractionalSeconds: false))
        try? FileHandle.standardError.write(contentsOf: Data("\(time) \(text)\n".utf8))
    }

    package init() {}
}
