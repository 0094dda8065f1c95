import ArgumentParser
import Foundation
import MobileSync
import NIOCore
import PostgreSQL
import ServiceKit

/// `mssctl load`: a scenario of pushes and devices on the running service, measured and checked.
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Pushes through the HTTP API to devices that it connects itself; measures and checks every push.",
        discussion: """
            A scenario (deploy/load/*.json) says what happens. Without one, --rate pushes to single devices open loop, \
            and latency counts from the instant a push was due; --window is closed loop and finds the highest rate. \
            On a local stack it also measures what every process, wire and the database took. A run that lost, doubled \
            or reordered a push exits with 1.
            """)

    @Option(help: "A scenario's file.", completion: .file(extensions: ["json"]))
    var scenario: String?
    @Option(help: "Pushes per second, open loop; in a scenario, of every stream with a rate or a window.")
    var rate: Int?
    @Option(help: "Pushes always under way, closed loop; in a scenario as --rate.")
    var window: Int?
    @Option(help: "Seconds of sending, of idling and of reconnecting.")
    var seconds: Int?
    @Option(help: "Devices in all; they are shared among users as the scenario says.")
    var devices: Int?
    @Option(help: "Keep-alive connections to the APIs.")
    var connections: Int?
    @Option(help: "Bytes of payload.")
    var payload: Int?
    @Option(help: "This process's share, as 1/3; the others are started with the same --run-name.")
    var part: String?
    @Option(help: "The run's name, 7 small letters or digits; made up when absent.")
    var runName: String?
    @Option(help: "Write the report as JSON to this file.", completion: .file())
    var report: String?
    @Option(help: "Where deploy/up has the local stack that is measured.")
    var stack = ".local"
    @Flag(help: "Measure the run alone: no processes, wires and rows, and no waiting for them.")
    var noResources = false
    @Option(help: "Run the load of this file and compare counts with its ceilings.", completion: .file())
    var check: String?
    @Option(help: "With --check: set the ceilings anew, from the median of so many runs.")
    var writeThresholds: Int?
    @OptionGroup var target: LoadTarget

    func validate() throws {
        guard check == nil || (scenario == nil && part == nil && !noResources) else {
            throw ValidationError("--check has its own scenario, and measures")
        }
        guard scenario != nil || check != nil || (rate == nil) != (window == nil) else {
            throw ValidationError("give --scenario, --rate or --window")
        }
        guard rate == nil || window == nil else { throw ValidationError("give --rate or --window") }
        guard [rate, window, seconds, devices, connections, writeThresholds].allSatisfy({ ($0 ?? 1) > 0 }) else {
            throw ValidationError("numbers must be above 0")
        }
        guard (payload ?? PushStamp.bytes) >= PushStamp.bytes else {
            throw ValidationError("--payload is at least \(PushStamp.bytes): so much says which push it is")
        }
        if let runName, !(runName.utf8.count == PushStamp.runBytes && runName.allSatisfy { $0.isLetter || $0.isNumber })
        {
            throw ValidationError("--run-name has \(PushStamp.runBytes) letters or digits")
        }
        guard part == nil || runName != nil else { throw ValidationError("--part needs --run-name") }
        _ = try share()
    }

    func run() async throws {
        if let check { return try await compare(with: check) }
        let found = try await load(try adjusted(try scenarioToRun()))
        print(found.text)
        if let report { try found.json().write(to: URL(fileURLWithPath: report)) }
        if !found.isCorrect { throw ExitCode.failure }
    }

    /// Runs a scenario.
    private func load(_ scenario: LoadScenario) async throws -> LoadReport {
        let plan = LoadPlan(
            scenario: scenario, part: try share(), instance: target.instance, run: runName ?? PushStamp.makeRun(),
            signer: try target.signing.signer(), connectSigner: try target.appKey.key().map(ConnectSigner.init))
        let probe =
            noResources
            ? nil
            : StackProbe(folder: stack, apis: target.apis.map(\.port), gateways: target.gateways.map(\.port))
        let database = probe == nil ? nil : try ToolSettings.database()
        defer { database?.close() }
        return try await LoadSession(plan: plan, target: target, probe: probe, database: database).run()
    }

    private func compare(with file: String) async throws {
        var thresholds = try LoadThresholds.read(file)
        guard let probe = StackProbe(folder: stack, apis: [], gateways: []) else {
            throw ValidationError("no local stack in \(stack): --check measures its processes")
        }
        let build = probe.isDebug ? "debug" : "release"
        let scenario = try adjusted(try LoadScenario.read(file: thresholds.scenario))
        var figures: [[String: Double]] = []
        for _ in 0..<(writeThresholds ?? 1) {
            let found = try await load(scenario)
            guard found.isCorrect else {
                print(found.text)
                throw ExitCode.failure
            }
            if let report { try found.json().write(to: URL(fileURLWithPath: report)) }
            figures.append(LoadFigures.of(found))
        }
        if writeThresholds != nil {
            thresholds.set(figures, of: build)
            try thresholds.json().write(to: URL(fileURLWithPath: file))
        }
        let comparison = thresholds.compare(figures.last ?? [:], of: build)
        print(comparison.text)
        if !comparison.isWithin { throw ExitCode.failure }
    }

    // MARK: What is asked for

    private func scenarioToRun() throws -> LoadScenario {
        if let scenario { return try LoadScenario.read(file: scenario) }
        return .single(
            rate.map { .rate(perSecond: $0, seconds: seconds ?? 10) } ?? .window(window ?? 1, seconds: seconds ?? 10))
    }

    /// With what the options say otherwise.
    private func adjusted(_ scenario: LoadScenario) throws -> LoadScenario {
        var scenario = scenario
        scenario.pace(rate: rate, window: window, seconds: seconds)
        if let devices { scenario.users = max(1, devices / scenario.devicesPerUser) }
        scenario.connections = connections ?? scenario.connections
        scenario.payloadBytes = payload ?? scenario.payloadBytes
        scenario.bizType = target.bizType ?? scenario.bizType
        scenario.globalBizType = target.globalBizType ?? scenario.globalBizType
        do {
            try scenario.check()
        } catch {
            throw ValidationError("\(error)")
        }
        return scenario
    }

    private func share() throws -> LoadPlan.Part {
        guard let part else { return LoadPlan.Part() }
        let numbers = part.split(separator: "/").compactMap { Int($0) }
        guard numbers.count == 2, numbers[0] >= 1, numbers[0] <= numbers[1] else {
            throw ValidationError("--part is a number and how many there are: 1/3")
        }
        return LoadPlan.Part(number: numbers[0], of: numbers[1])
    }
}

extension LoadScenario {
    /// Reads a scenario's file.
    static func read(file: String) throws -> LoadScenario {
        guard let data = FileManager.default.contents(atPath: file) else {
            throw ValidationError("no scenario at \(file)")
        }
        do {
            return try read(data)
        } catch {
            throw ValidationError("\(file): \(error)")
        }
    }
}
