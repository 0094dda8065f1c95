import Foundation
import OfflineResources
import TestSupport
import Testing

extension SteadySystem {
    /// The measurements of `deploy/bench/resources.sh`, which names the output file.
    @Suite("Resources: figures", .enabled(if: ProcessInfo.processInfo.environment["MSS_BENCH_RESOURCES"] != nil))
    struct ResourceBenchTests {
        private static let file = ProcessInfo.processInfo.environment["MSS_BENCH_RESOURCES"]
        private static let rounds = Int(ProcessInfo.processInfo.environment["MSS_BENCH_ROUNDS"] ?? "") ?? 200

        let stack: Stack

        init() throws { stack = try Stack.running }

        private func appendFigure(_ line: String) throws {
            let file = try requireValue(Self.file, "no file for the figures")
            let former = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            try (former + line + "\n").write(toFile: file, atomically: true, encoding: .utf8)
        }

        @Test("a cached resource that changes is fresh on an online device within 1 s of the push")
        func freshness() async throws {
            let backend = ResourceBackend()
            backend.set("/r/a", "0")
            let caller = Caller(apis: stack.apis, instance: Stack.clientInstance)
            try await backend.serving { port in
                let device = try ResourceDevice(stack, device: "bench1-a", user: "bench1", backend: port)
                _ = try await device.resources.fetchObject("/r/a")
                var times: [Duration] = []
                try await device.running {
                    for round in 1...Self.rounds {
                        let tag = backend.set("/r/a", "\(round)").replacing("\"", with: "\\\"")
                        let start = ContinuousClock.now
                        _ = await caller.call(
                            "MSS_RESOURCES", to: "bench1", id: UUID().uuidString,
                            payload: "{\"uri\":\"/r/a\",\"action\":\"refresh\",\"etag\":\"\(tag)\"}", api: round)
                        var end: ContinuousClock.Instant?
                        try await eventually("it is fresh", within: .seconds(20)) {
                            end = device.told.time(of: "/r/a", "\(round)")
                            return end != nil
                        }
                        if let end { times.append(start.duration(to: end)) }
                    }
                }
                let sorted = times.sorted()
                let longest = try #require(sorted.last)
                #expect(longest < .seconds(1))
                func text(_ part: Double) -> String {
                    let time = sorted[min(sorted.count - 1, Int(Double(sorted.count) * part))]
                    return time.formatted(.units(allowed: [.milliseconds], fractionalPart: .show(length: 1)))
                }
                try appendFigure(
                    "from the call of the push to the fresh copy, \(sorted.count) times: median \(text(0.5)), 95th "
                        + "percentile \(text(0.95)), longest \(text(1))")
            }
        }

        @Test("the traffic for 1,000 cached resources, of which 10 changed, is at most twice the traffic of these 10")
        func traffic() async throws {
            var ratios: [Double] = []
            for round in 0..<3 {
                let figures = try await ResourceTraffic.measure(stack, user: "bench2-\(round)")
                #expect(figures.ratio <= 2 && figures.asked == 10)
                try appendFigure(
                    "10 of 1,000 changed: \(figures.backend) bytes at the backend and \(figures.service) of the "
                        + "service's, against \(figures.ten) for just the ten: "
                        + "\(figures.ratio.formatted(.number.precision(.fractionLength(2))))")
                ratios.append(figures.ratio)
            }
            try appendFigure(
                "median of \(ratios.count): \(ratios.sorted()[1].formatted(.number.precision(.fractionLength(2))))")
        }
    }
}
