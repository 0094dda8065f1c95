import ArgumentParser
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import PostgreSQL
import ToolSupport

/// A load run, from the first connection to the report. It measures each step.
struct LoadSession {
    let plan: LoadPlan
    let target: LoadTarget
    /// The value is nil if only the run itself is measured.
    let probe: StackProbe?
    let database: PostgresConnection?

    /// Executes the run.
    func run() async throws -> LoadReport {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let (plan, target) = (plan, target)
        let (apis, gateways, context) = (try target.apiAddresses, try target.gatewayAddresses, try target.tls())
        let run = try await loop.submit {
            let dialer = LoadDialer(
                loop: loop, apis: apis, gateways: gateways, host: target.apis[0].host, tls: context)
            return NIOLoopBound(LoadRun(plan: plan, dialer: dialer), eventLoop: loop)
        }.get()
        try await loop.flatSubmit { run.value.open() }.get()
        let operations = try await loop.submit { run.value.operations }.get()
        let tenant = try await startTenant(for: operations)
        var report = LoadReport(plan)
        var stream = 0
        for step in plan.scenario.steps {
            report.steps.append(try await measured(step, run, loop, firstStream: stream))
            stream += step.streams.count
        }
        (report.lost, report.faults, report.fallenDevices) = try await loop.submit {
            (run.value.pushes.missing, run.value.pushes.faults, run.value.fleet.fallenDevices)
        }.get()
        report.operationFaults = operations.faults
        await tenant?.stop()
        // Open connections end with the process.
        return report
    }

    /// Starts the tenant for device operations, on a thread of its own, so that it does not slow the generator.
    private func startTenant(for operations: OperationProgress) async throws -> TenantServer? {
        guard plan.scenario.steps.contains(where: { $0.operations != nil }) else { return nil }
        let delay = TimeAmount.milliseconds(Int64(target.tenantDelay))
        return try await TenantServer.start(
            port: target.tenantPort, on: MultiThreadedEventLoopGroup(numberOfThreads: 1)
        ) { question in
            operations.call(question)
            return TenantReply(delay: delay)
        }
    }

    private func measured(
        _ step: LoadStep, _ run: NIOLoopBound<LoadRun>, _ loop: any EventLoop, firstStream: Int
    ) async throws -> LoadStepReport {
        let (before, rowsBefore) = (await probe?.sample(), try await rows(after: step, waiting: false))
        let streams = firstStream..<(firstStream + step.streams.count)
        let counts = try await loop.submit { (run.value.traffic, run.value.pushes.deliveries) }.get()
        try await loop.flatSubmit { run.value.perform(step, firstStream: firstStream) }.get()
        let found: LoadStepReport? = try await loop.submit {
            run.value.lastStep.map { progress in
                LoadStepReport(
                    name: step.name, progress, streams: streams.map { StreamReport(run.value.streams[$0]) },
                    operations: step.operations.map { OperationReport($0, run.value.operations.figures) },
                    traffic: run.value.traffic.since(counts.0), deliveries: run.value.pushes.deliveries - counts.1)
            }
        }.get()
        guard var report = found else { throw ValidationError("the step \(step.name) has no result") }
        guard let before, let after = await probe?.sample() else { return report }
        var resources = ResourceReport(after, since: before)
        if let rowsBefore, let rowsAfter = try await rows(after: step, waiting: true) {
            resources.database = rowsAfter.since(rowsBefore)
        }
        report.resources = resources
        return report
    }

    /// The database counters, only for steps with pushes or reconnects. `waiting` waits until PostgreSQL's processes
    /// have published theirs.
    private func rows(after step: LoadStep, waiting: Bool) async throws -> DatabaseSample? {
        guard let database, !step.streams.isEmpty || step.reconnects else { return nil }
        if waiting { try await Task.sleep(for: .seconds(DatabaseSample.delaySeconds)) }
        return try DatabaseSample.measure(database)
    }
}
