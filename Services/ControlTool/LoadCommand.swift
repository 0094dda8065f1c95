import ArgumentParser
import DeviceProtocol
import Foundation
import MobileSync
import NIOCore
import NIOPosix
import NIOSSL

/// `mssctl load`: durable pushes through the HTTP API to devices on TLS connections, measured and checked.
struct LoadCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "load",
        abstract: "Pushes through the HTTP API to devices that it connects itself; measures and checks every push.",
        discussion: """
            With --rate the load is open loop and latency counts from the instant a push was due. With --window it is \
            closed loop and finds the highest rate. A run that lost, doubled or reordered a push exits with 1.
            """)

    @Option(help: "The APIs, host:port, comma separated.")
    var api = "127.0.0.1:7080"
    @Option(help: "The gateways, host:port, comma separated.")
    var gateway = "127.0.0.1:7443"
    @Option(help: "The certificate authority of the gateways.")
    var ca = ".local/tls/ca.pem"
    @Option(help: "The instance.")
    var instance = "demo_app"
    @Option(help: "A Sync ID with user target.")
    var bizType = "UCHAT"
    @Option(help: "Devices, each of a user of its own.")
    var devices = 200
    @Option(help: "Keep-alive connections to the APIs.")
    var connections = 64
    @Option(help: "Seconds of sending.")
    var seconds = 10
    @Option(help: "Pushes per second, open loop.")
    var rate: Int?
    @Option(help: "Pushes always under way, closed loop.")
    var window: Int?
    @Option(help: "Bytes of payload.")
    var payload = 300
    @OptionGroup var signing: SigningArguments
    @OptionGroup var appKey: AppKeyOptions

    func validate() throws {
        guard (rate == nil) != (window == nil) else { throw ValidationError("give --rate or --window") }
        guard devices > 0, connections > 0, seconds > 0, (rate ?? 1) > 0, (window ?? 1) > 0 else {
            throw ValidationError("numbers must be above 0")
        }
        guard FileManager.default.isReadableFile(atPath: ca) else {
            throw ValidationError("no certificate authority at \(ca): run deploy/up, or give --ca")
        }
    }

    func run() async throws {
        let plan = LoadPlan(
            instance: instance, bizType: bizType, devices: devices, seconds: seconds,
            pace: rate.map { .rate(perSecond: $0) } ?? .window(window ?? 1), httpConnections: connections,
            payloadBytes: payload, runID: String(UInt32.random(in: .min ... .max), radix: 36),
            signer: try signing.signer(), connectSigner: try appKey.key().map(ConnectSigner.init))
        let apis = try api.split(separator: ",").map(Self.address)
        let gateways = try gateway.split(separator: ",").map(Self.address)
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(ca)
        tls.applicationProtocols = [DeviceProtocolLimits.applicationProtocol]
        let context = try NIOSSLContext(configuration: tls)
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let loop = group.next()
        let run = try await loop.submit {
            NIOLoopBound(LoadRun(plan: plan, loop: loop, host: apis[0].host), eventLoop: loop)
        }.get()
        for number in 0..<plan.devices {
            let address = gateways[number % gateways.count]
            try await Self.connect(group, address) { channel in
                let pipeline = channel.pipeline.syncOperations
                try pipeline.addHandler(NIOSSLClientHandler(context: context, serverHostname: nil))
                try pipeline.addHandler(
                    ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)))
                try pipeline.addHandler(run.value.makeDevice(number))
            }
        }
        try await loop.flatSubmit { run.value.whenReady }.get()
        let callers = try await Self.callers(group, loop, run, apis, count: plan.httpConnections)
        let report = try await loop.flatSubmit { run.value.run(callers: callers.value) }.get()
        print(report.text)
        if !report.isCorrect { throw ExitCode.failure }
    }

    private static func callers(
        _ group: MultiThreadedEventLoopGroup, _ loop: any EventLoop, _ run: NIOLoopBound<LoadRun>,
        _ apis: [(host: String, port: Int)], count: Int
    ) async throws -> NIOLoopBound<[LoadCaller]> {
        let callers = NIOLoopBoundBox<[LoadCaller]>.makeBoxSendingValue([], eventLoop: loop)
        for number in 0..<count {
            try await connect(group, apis[number % apis.count]) { channel in
                let caller = run.value.makeCaller()
                callers.value.append(caller)
                try channel.pipeline.syncOperations.addHandler(caller)
            }
        }
        return try await loop.submit { NIOLoopBound(callers.value, eventLoop: loop) }.get()
    }

    private static func connect(
        _ group: MultiThreadedEventLoopGroup, _ address: (host: String, port: Int),
        _ initialize: @escaping @Sendable (any Channel) throws -> Void
    ) async throws {
        _ = try await ClientBootstrap(group: group)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try initialize(channel) } }
            .connect(host: address.host, port: address.port).get()
    }

    private static func address(_ text: Substring) throws -> (host: String, port: Int) {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let port = Int(parts[1]) else { throw ValidationError("\(text) is not host:port") }
        return (String(parts[0]), port)
    }
}
