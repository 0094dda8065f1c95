package import ArgumentParser
import Foundation
import MobileSync
import NIOCore
import PostgreSQL
import ServiceKit
import ToolSupport

/// `mssctl load`: sends a scenario of pushes and devices to the running service, measures it and checks it.
package struct LoadCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Sends pushes through the HTTP API to simulated devices, and measures and checks every delivery.",
        discussion: """
            A scenario (deploy/load/*.json) defines the load. Without a scenario, --rate sends pushes to single \
            devices at a fixed rate, and latency counts from the instant at which a push was due. --window keeps a \
            number of pushes in flight and finds the highest rate. With a local stack, the command also measures every \
            process, connection and the database. If a push was lost, duplicated or reordered, the exit code is 1.
            """)

    @Option(help: "Scenario file.", completion: .file(extensions: ["json"]))
    var scenario: String?
    @Option(help: "Pushes per second; in a scenario, for every stream with a rate or a window.")
    var rate: Int?
    @Option(help: "Number of pushes in flight; in a scenario, for the same streams as --rate.")
    var window: Int?
    @Option(help: "Seconds of each push, idle and reconnect step.")
    var seconds: Int?
    @Option(help: "Total number of devices; the scenario defines the devices per user.")
    var devices: Int?
    @Option(help: "Keep-alive connections to the API.")
    var connections: Int?
    @Option(help: "Bytes of payload.")
    var payload: Int?
    @Option(help: "Part of the load for this process, for example 1/3; start the others with the same --run-name.")
    var part: String?
    @Option(help: "Name of the run, 7 lower-case letters or digits; random when absent.")
    var runName: String?
    @Option(help: "Write the report as JSON to this file.", completion: .file())
    var report: String?
    @Option(help: "Folder of the local stack that is measured.")
    var stack = ".local"
    @Flag(help: "Measure only the run, not processes, connections and the database.")
    var noResources = false
    @Option(help: "Run the load of this file and compare counts with its limits.", completion: .file())
    var check: String?
    @Option(help: "With --check: write new limits from the median of this many runs.")
    var writeThresholds: Int?
    @OptionGroup var target: LoadTarget

    package func validate() throws {
        guard check == nil || (scenario == nil && part == nil && !noResources) else {
            throw ValidationError("--check cannot be combined with --scenario, --part or --no-resources")
        }
        guard scenario != nil || check != nil || (rate == nil) != (window == nil) else {
            throw ValidationError("one of --scenario, --rate and --window is needed")
        }
        guard rate == nil || window == nil else { throw ValidationError("--rate and --window exclude each other") }
        guard [rate, window, seconds, devices, connections, writeThresholds].allSatisfy({ ($0 ?? 1) > 0 }) else {
            throw ValidationError("numbers must be above 0")
        }
        guard (payload ?? PushStamp.bytes) >= PushStamp.bytes else {
            throw ValidationError(
                "--payload must be at least \(PushStamp.bytes), the length of the stamp that identifies a push")
        }
        if let runName, !(runName.utf8.count == PushStamp.runBytes && runName.allSatisfy { $0.isLetter || $0.isNumber })
        {
            throw ValidationError("--run-name must have \(PushStamp.runBytes) letters or digits")
        }
        guard part == nil || runName != nil else { throw ValidationError("--part needs --run-name") }
        _ = try share()
    }

    package func run() async throws {
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

    // MARK: Options

    private func scenarioToRun() throws -> LoadScenario {
        if let scenario { return try LoadScenario.read(file: scenario) }
        return .single(
            rate.map { .rate(perSecond: $0, seconds: seconds ?? 10) } ?? .window(window ?? 1, seconds: seconds ?? 10))
    }

    /// The scenario with the values of the options.
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
            throw ValidationError("--part must have the form 1/3")
        }
        return LoadPlan.Part(number: numbers[0], of: numbers[1])
    }

    package init() {}
}

extension LoadScenario {
    /// Reads a scenario file.
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
