import Credentials
import DeviceProtocol
import Foundation
import MobileSync
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel

/// A device of a load run: it acknowledges and confirms as DeviceProtocol.md says, keeps only positions, and goes on
/// from them with its next connection.
final class LoadDevice: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Where its connection stands.
    enum Phase { case away, connecting, ready }

    let number: Int
    private let run: LoadRun
    private let lateness: TimeAmount?
    /// Of its id, the same with every connection.
    private let secret = Data(RandomBytes.make(32))
    private var context: ChannelHandlerContext?
    private var stream = FrameStream()
    private var channels: [DeviceChannel] = []
    private var out = ByteBuffer()
    private var outbox = LoadOutbox()
    private var reportID: UInt64 = 0
    private var isReporting = false
    private var isPausing = false
    private(set) var phase = Phase.away
    /// Nanoseconds at which the connection was begun.
    private(set) var connectingSince: Int64 = 0
    /// The run has ended the connection, it did not fall.
    private(set) var isLeaving = false
    /// How often no connection came about; each time it is another gateway's turn.
    private(set) var failures = 0
    /// How long the gateway's `Close` wants it to stay away.
    private(set) var pauseMilliseconds: Int64 = 0

    init(_ number: Int, _ run: LoadRun) {
        self.number = number
        self.run = run
        let lateness = run.plan.lateness(ofDevice: number)
        self.lateness = lateness == 0 ? nil : .milliseconds(Int64(lateness))
    }

    /// Something is not acknowledged, or not confirmed, as far as the gateway has told.
    private(set) var isDirty = false

    // MARK: The run's calls

    /// A connection is being made for it.
    func connects(at now: Int64) {
        phase = .connecting
        connectingSince = now
        pauseMilliseconds = 0
        isLeaving = false
    }

    /// Ends the connection; the run hears of it.
    func leave() {
        isLeaving = true
        context?.close(promise: nil)
    }

    /// As the service knows it.
    var name: String { "load-\(run.plan.run)-p\(run.plan.part.number)-d\(number)" }

    /// The user does something; `sendOperations` sends it.
    func submit(_ operation: Mss_Device_V1_DeviceOperation) { outbox.add(operation) }

    /// Sends what waits, when nothing is under way.
    func sendOperations() {
        guard phase == .ready, let packet = outbox.next() else { return }
        PacketEncoder.encode(packet, into: &out)
        flush()
    }

    /// A sign of life.
    func ping() {
        guard phase == .ready else { return }
        AckFrames.writePing(1, isAnswer: false, into: &out)
        flush()
    }

    /// No connection came about.
    func failed() {
        phase = .away
        failures += 1
    }

    // MARK: Events

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        guard !isLeaving else { return context.close(promise: nil) }
        PacketEncoder.encode(connectPacket(), into: &out)
        flush()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        let wasReady = phase == .ready
        phase = .away
        stream = FrameStream()
        out.clear()
        (isReporting, isPausing) = (false, false)
        outbox.ended()
        for index in channels.indices {
            channels[index].unreported.insert(contentsOf: channels[index].reporting, at: 0)
            channels[index].reporting = []
        }
        run.ended(self, wasReady: wasReady)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        run.traffic.deviceBytesIn += part.readableBytes
        let now = LoadRun.now
        do {
            try stream.take(part) { take($0, now) }
        } catch {
            context.close(promise: nil)
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        guard let lateness else { return answer() }
        guard !isPausing else { return }
        isPausing = true
        _ = context.channel.setOption(.autoRead, value: false)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: lateness) {
            let (device, context) = bound.value
            guard device.context === context else { return }
            device.isPausing = false
            device.answer()
            _ = context.channel.setOption(.autoRead, value: true)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Frames

    private func take(_ frame: UnsafeRawBufferPointer, _ now: Int64) {
        run.traffic.framesIn += 1
        switch ScannedFrame(frame) {
        case .push(let push):
            let isWhole = ScannedBatch.each(frame, in: push) { take($0, frame, now) }
            if !isWhole { run.foundStranger() }
        case .recorded(let reportID) where isReporting && reportID == self.reportID:
            isReporting = false
            for index in channels.indices { channels[index].reporting.removeAll(keepingCapacity: true) }
        case .caughtUp where phase == .connecting:
            phase = .ready
            run.caughtUp(self, now)
            sendOperations()
        case .connected(let heartbeatSeconds): run.heartbeat(seconds: Int(heartbeatSeconds))
        case .operationsTaken(let content):
            let message = Data(UnsafeRawBufferPointer(rebasing: frame[content]))
            guard let answer = try? Mss_Device_V1_OperationsTaken(serializedBytes: message) else {
                return run.foundStranger()
            }
            let (taken, refused) = outbox.answered(answer)
            run.operations.answered(taken: taken, refused: refused, at: now)
            let bound = NIOLoopBound(self, eventLoop: run.loop)
            run.loop.scheduleTask(in: .milliseconds(Int64(answer.retryAfterMs))) { bound.value.sendOperations() }
        case .ping(let number): AckFrames.writePing(number, isAnswer: true, into: &out)
        case .close(_, let pause): pauseMilliseconds = Int64(min(pause, 60_000))
        case nil: run.foundStranger()
        default: break
        }
    }

    private func take(_ batch: ScannedBatch, _ frame: UnsafeRawBufferPointer, _ now: Int64) {
        let index = channel(batch.kind, UnsafeRawBufferPointer(rebasing: frame[batch.bizType]))
        if batch.after > channels[index].position { run.foundGap() }
        let isWhole = batch.eachEntry(frame) { oplogID, payload in
            channels[index].unreported.append(oplogID)
            if oplogID <= channels[index].lastOplogID { run.foundDisorder() }
            channels[index].lastOplogID = oplogID
            let payload = UnsafeRawBufferPointer(rebasing: frame[payload])
            if batch.kind == 1, let results = OperationResults(payload) {
                for result in results.results {
                    outbox.told(result.operationId)
                    run.operations.tell(
                        result.operationId, to: name, isAccepted: result.accepted, code: result.code, at: now)
                }
            } else if let stamp = PushStamp(payload, run: run.runBytes) {
                run.delivered(stamp, to: number, now)
            } else if batch.kind == 0 {
                // Global data of other runs comes to every device; nothing else does.
                run.foundStranger()
            }
        }
        if !isWhole { run.foundStranger() }
        channels[index].bindNumber = batch.bindNumber
        channels[index].position = max(channels[index].position, batch.upto)
        channels[index].isUnacknowledged = true
        if !isDirty {
            isDirty = true
            run.dirtyDevices += 1
        }
    }

    private func channel(_ kind: UInt64, _ bizType: UnsafeRawBufferPointer) -> Int {
        if let known = channels.firstIndex(where: { $0.isNamed(kind: kind, bizType) }) { return known }
        channels.append(DeviceChannel(kind: kind, bizType: Array(bizType)))
        return channels.count - 1
    }

    /// One write for all that came in one turn; one report under way at a time.
    private func answer() {
        if phase == .ready {
            AckFrames.writeStored(&channels, into: &out)
            if !isReporting, AckFrames.writeReport(reportID + 1, &channels, into: &out) {
                reportID += 1
                isReporting = true
            }
            if isDirty, !isReporting {
                isDirty = false
                run.dirtyDevices -= 1
                run.progressed()
            }
        }
        flush()
    }

    private func flush() {
        guard let context, out.readableBytes > 0 else { return }
        run.traffic.deviceBytesOut += out.readableBytes
        context.writeAndFlush(wrapOutboundOut(out), promise: nil)
        out.clear()
    }

    private func connectPacket() -> Mss_Device_V1_Packet {
        func points(isUser: Bool) -> [Mss_Device_V1_SyncPoint] {
            channels.filter { ($0.kind % 2 == 0) == isUser }.map { channel in
                .with {
                    $0.kind = Mss_Device_V1_ChannelKind(rawValue: Int(channel.kind)) ?? .user
                    $0.bizType = String(decoding: channel.bizType, as: UTF8.self)
                    $0.oplogID = channel.position
                }
            }
        }
        let plan = run.plan
        let packet = Mss_Device_V1_Packet.with {
            $0.connect.protocolVersion = DeviceProtocolLimits.version
            $0.connect.instanceID = plan.instance
            $0.connect.deviceID = name
            $0.connect.storeID = "load-\(plan.run)"
            $0.connect.osName = "iOS"
            $0.connect.appVersion = "1.0"
            $0.connect.syncPoints = points(isUser: false)
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = plan.user(ofDevice: number)
            $0.connect.bind.sessionID = "load"
            $0.connect.bind.syncPoints = points(isUser: true)
            $0.connect.bind.requestedByApp = true
            $0.connect.deviceSecret = secret
        }
        return plan.connectSigner?.signed(packet, now: .now) ?? packet
    }
}
