import AsyncHTTPClient
import Foundation
import NIOCore
import ToolSupport

/// Reads the resource use of the processes, connections and database of a local stack.
struct StackProbe: Sendable {
    /// The result of one measurement.
    struct Sample: Sendable {
        var processes: [String: ProcessSample]
        /// The value is nil if `ss` is not installed.
        var wires: WireSample?
    }

    /// Name of the load generator among the processes.
    static let generator = "load"

    /// Folder of the stack.
    let folder: String
    private let ports: [Int: String]
    private let healthPorts: [String: Int]
    /// Folder with the files of the counting library. The value is nil if calls are not counted.
    private let calls: String?

    /// - Parameters:
    /// - folder: folder of the stack, by default `.local`.
    /// - apis: ports of the API.
    /// - gateways: ports of the gateways.
    /// - Returns: nil if no stack runs there.
    init?(folder: String, apis: [Int], gateways: [Int]) {
        let environments = Self.pids(folder).mapValues(Self.environment)
        guard let writer = environments.first(where: { $0.key.hasPrefix("writer") })?.value else { return nil }
        self.folder = folder
        var ports: [Int: String] = [:]
        for (key, wire) in ["MSS_AMQP_PORT": "amqp", "MSS_POSTGRES_PORT": "postgresql"] {
            if let port = writer[key].flatMap({ Int($0) }) { ports[port] = wire }
        }
        for port in apis { ports[port] = "http" }
        for port in gateways { ports[port] = "device" }
        self.ports = ports
        healthPorts = environments.compactMapValues { $0["MSS_HEALTH_PORT"].flatMap { Int($0) } }
        let calls = "\(folder)/calls"
        self.calls = FileManager.default.fileExists(atPath: calls) ? calls : nil
    }

    /// Whether the services are built without optimisation.
    var isDebug: Bool {
        Self.pids(folder).first { $0.key.hasPrefix("writer") }.map { ProcessTree.isDebug($0.value) } ?? false
    }

    /// Reads the cumulative resource use.
    func sample() async -> Sample {
        let tree = ProcessTree()
        var processes = Self.pids(folder).mapValues { tree.sample($0, calls: calls) }
        processes[Self.generator] = tree.sample(Int(ProcessInfo.processInfo.processIdentifier), calls: nil)
        for (name, port) in healthPorts {
            guard let text = await Self.metrics(port) else { continue }
            processes[name]?.bodiesSent = Self.counter("mss_bus_bodies_sent_total", in: text)
            processes[name]?.bodiesReceived = Self.counter("mss_bus_bodies_received_total", in: text)
        }
        return Sample(processes: processes, wires: await WireSample.measure(ports))
    }

    // MARK: Parts

    /// Process ids of the supervised processes of a stack's folder, by name.
    static func pids(_ folder: String) -> [String: Int] {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: "\(folder)/run")) ?? []
        return files.filter { $0.hasSuffix(".child") }.reduce(into: [:]) { pids, file in
            let text = try? String(contentsOfFile: "\(folder)/run/\(file)", encoding: .utf8)
            pids[String(file.dropLast(".child".count))] = text.flatMap {
                Int($0.trimmingCharacters(in: .whitespacesAndNewlines))
            }
        }
    }

    private static func environment(_ pid: Int) -> [String: String] {
        let data = FileManager.default.contents(atPath: "/proc/\(pid)/environ") ?? Data()
        return data.split(separator: 0).reduce(into: [:]) { environment, setting in
            let parts = String(decoding: setting, as: UTF8.self).split(separator: "=", maxSplits: 1)
            if parts.count == 2 { environment[String(parts[0])] = String(parts[1]) }
        }
    }

    private static func metrics(_ port: Int) async -> String? {
        let request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/metrics")
        guard let response = try? await HTTPClient.shared.execute(request, timeout: .seconds(5)) else { return nil }
        return (try? await response.body.collect(upTo: 1 << 22)).map { String(buffer: $0) }
    }

    /// The value of a counter without labels in a page of metrics.
    static func counter(_ name: String, in text: String) -> Int? {
        text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.flatMap { Int($0.dropFirst(name.count + 1)) }
    }
}
