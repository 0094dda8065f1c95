import ArgumentParser
import Foundation
import NIOCore
import NIOPosix
import ToolSupport

/// A comparison, from the first connection to the samples.
///
/// The devices and connections of both sides exist for the whole run. The load alternates: a slice for the first side,
/// a slice for the second, and so on. The idle side has only heartbeats. One event loop generates both loads, so both
/// meet the same generator.
struct ComparisonSession {
    /// Length of a slice. The sending ends after it, when the last sample is taken.
    static let slice = Duration.seconds(4)
    /// Begin of a slice that is not measured: the other side comes to rest, and this one reaches its pace.
    static let dropped = Duration.seconds(1)
    /// Upper bound of the sending, should a sample take long.
    private static let sendingSeconds = 30

    let sides: [ComparedSide]
    /// Pace of the pushes, for each of the sides in turn.
    let pace: PushStream.Pace
    let pairs: Int
    /// Keep-alive connections to each API.
    let connections: Int

    /// The pace of a slice.
    ///
    /// - Parameters:
    ///   - rate: pushes per second in an open loop.
    ///   - window: pushes in flight in a closed loop, if there is no rate.
    static func pace(rate: Int?, window: Int) -> PushStream.Pace {
        rate.map { .rate(perSecond: $0, seconds: sendingSeconds) } ?? .window(window, seconds: sendingSeconds)
    }

    /// Executes the comparison.
    ///
    /// - Parameter progress: called with the number of measured pairs.
    /// - Throws: `ValidationError` if a side loses, duplicates or reorders a push or refuses a call.
    func run(progress: (Int) -> Void) async throws -> ComparisonSamples {
        try SchedulerSample.check()
        let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
        let probe = try MachineProbe(folder: sides[0].stack)
        defer { probe.stop() }
        var loaded: [LoadedSide] = []
        for side in sides { loaded.append(try await LoadedSide.connect(side, scenario: scenario(), on: loop)) }
        var samples = ComparisonSamples(load: load, first: sides[0].name, second: sides[1].name)
        for number in 0..<pairs {
            let first = try await loaded[0].slice(number, probe)
            samples.pairs.append(SlicePair(first: first, second: try await loaded[1].slice(number, probe)))
            progress(number + 1)
        }
        for side in loaded { try await side.check() }
        return samples
    }

    /// The load in words.
    private var load: String {
        switch pace {
        case .window(let size, _): "closed loop, \(size) single pushes in flight"
        case .rate(let perSecond, _): "open loop, \(perSecond) single pushes per second"
        case .each, .times: "\(pace)"
        }
    }

    /// A step that connects, and a step for each slice.
    private func scenario() -> LoadScenario {
        var scenario = LoadScenario.single(pace)
        scenario.connections = connections
        let push = scenario.steps[1]
        scenario.steps = [scenario.steps[0]] + Array(repeating: push, count: pairs)
        return scenario
    }
}

/// A side with its connected devices.
private struct LoadedSide {
    let side: ComparedSide
    let scenario: LoadScenario
    let loop: any EventLoop
    let run: NIOLoopBound<LoadRun>

    /// Opens the connections of a side and connects its devices.
    static func connect(
        _ side: ComparedSide, scenario: LoadScenario, on loop: any EventLoop
    ) async throws -> LoadedSide {
        let target = try side.target()
        let (apis, gateways, context) = (try target.apiAddresses, try target.gatewayAddresses, try target.tls())
        let host = target.apis[0].host
        let plan = LoadPlan(
            scenario: scenario, part: LoadPlan.Part(), instance: target.instance, run: PushStamp.makeRun())
        let run = try await loop.submit {
            let dialer = LoadDialer(loop: loop, apis: apis, gateways: gateways, host: host, tls: context)
            return NIOLoopBound(LoadRun(plan: plan, dialer: dialer), eventLoop: loop)
        }.get()
        let loaded = LoadedSide(side: side, scenario: scenario, loop: loop, run: run)
        try await loop.flatSubmit { run.value.open() }.get()
        try await loop.flatSubmit { run.value.perform(scenario.steps[0], firstStream: 0) }.get()
        try await loaded.checkStep()
        return loaded
    }

    /// Loads the side for one slice and measures it.
    ///
    /// Deliveries and processes are measured over the same time. The latencies leave out the pushes that were due while
    /// this process read its samples, because that takes processor time from the measured processes.
    func slice(_ number: Int, _ probe: MachineProbe) async throws -> SliceSample {
        let (run, step, start) = (run, scenario.steps[1 + number], ContinuousClock.now)
        let end = loop.flatSubmit {
            run.value.streams[number].latencyWindow = 0..<0
            return run.value.perform(step, firstStream: number)
        }
        try await Task.sleep(until: start + ComparisonSession.dropped)
        probe.reset()
        let before = try await sample(number)
        try await loop.submit { run.value.streams[number].latencyWindow = LoadRun.now..<Int64.max }.get()
        try await Task.sleep(until: start + ComparisonSession.slice)
        try await loop.submit {
            let begin = run.value.streams[number].latencyWindow.lowerBound
            run.value.streams[number].latencyWindow = begin..<max(begin, LoadRun.now)
        }.get()
        let (longestSync, ping) = probe.result
        let after = try await sample(number)
        try await loop.submit { run.value.stopSending() }.get()
        try await end.get()
        try await checkStep()
        let latency = try await loop.submit { LatencyReport(run.value.streams[number].deliveryLatency) }.get()
        guard after.deliveries > before.deliveries, latency.count > 0 else {
            throw ValidationError("\(side.name): no push was delivered in a slice")
        }
        return SliceSample(
            seconds: Double(after.instant - before.instant) / 1e9, deliveries: after.deliveries - before.deliveries,
            p50: latency.p50, p99: latency.p99, processes: after.scheduler.since(before.scheduler),
            stolenPercent: after.time.stolenPercent(since: before.time), longestSync: longestSync, ping: ping)
    }

    /// Counters at one instant.
    private struct Counters: Sendable {
        let instant: Int64
        let deliveries: Int
        let time: MachineTime
        let scheduler: SchedulerSample
    }

    private func sample(_ number: Int) async throws -> Counters {
        let (run, processes) = (run, try side.running())
        let (instant, deliveries) = try await loop.submit { (LoadRun.now, run.value.pushes.deliveries) }.get()
        return Counters(
            instant: instant, deliveries: deliveries, time: MachineTime.read(),
            scheduler: SchedulerSample(of: processes))
    }

    private func checkStep() async throws {
        let run = run
        let isComplete = try await loop.submit { run.value.lastStep?.isComplete ?? false }.get()
        guard isComplete else { throw ValidationError("\(side.name): a step did not end; no event for 15 s") }
    }

    /// Checks that no push was lost, duplicated or reordered, and no call was refused.
    func check() async throws {
        let run = run
        let (missing, faults, codes) = try await loop.submit {
            (run.value.pushes.missing, run.value.pushes.faults, Set(run.value.streams.flatMap(\.answers.keys)))
        }.get()
        guard missing == 0, faults.isEmpty, codes.isSubset(of: ["SUCCESS", "NOT_ONLINE"]) else {
            throw ValidationError(
                "\(side.name) is NOT CORRECT: lost \(missing), \(faults), responses \(codes.sorted())")
        }
    }
}
