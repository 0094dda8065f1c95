import Credentials
import DeviceProtocol
import Foundation
import MobileSync
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel

/// A device of a load run. It acknowledges and confirms as DeviceProtocol.md requires, keeps only positions, and
/// continues from them after a reconnect.
final class LoadDevice: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let number: Int
    private let run: LoadRun
    private let lateness: TimeAmount?
    /// The device secret, equal for all connections.
    private let secret = Data(RandomBytes.make(32))
    private var context: ChannelHandlerContext?
    private var stream = FrameStream()
    private var receipts = DeviceReceipts()
    private var out = ByteBuffer()
    private var outbox = LoadOutbox()
    /// The device waits before it reads and acknowledges.
    private var isPausing = false
    private(set) var connection = DeviceConnection()

    init(_ number: Int, _ run: LoadRun) {
        self.number = number
        self.run = run
        let lateness = run.plan.lateness(ofDevice: number)
        self.lateness = lateness == 0 ? nil : .milliseconds(Int64(lateness))
    }

    // MARK: Calls of the run

    /// Records the start of a connection attempt.
    func connects(at now: Int64) { connection.begin(at: now) }

    /// Closes the connection. The run receives `ended`.
    func leave() {
        connection.isLeaving = true
        context?.close(promise: nil)
    }

    /// The device id.
    var name: String { "load-\(run.plan.run)-p\(run.plan.part.number)-d\(number)" }

    /// Adds an operation. `sendOperations` sends it.
    func submit(_ operation: Mss_Device_V1_DeviceOperation) { outbox.add(operation) }

    /// Sends waiting operations if no frame with operations is in flight.
    func sendOperations() {
        guard connection.phase == .ready, let packet = outbox.next() else { return }
        PacketEncoder.encode(packet, into: &out)
        flush()
    }

    /// Sends a heartbeat.
    func ping() {
        guard connection.phase == .ready else { return }
        AckFrames.writePing(1, isAnswer: false, into: &out)
        flush()
    }

    /// Records a failed connection attempt.
    func failed() { connection.fail() }

    // MARK: Events

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        guard !connection.isLeaving else { return context.close(promise: nil) }
        PacketEncoder.encode(connectPacket(), into: &out)
        flush()
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        let wasReady = connection.phase == .ready
        connection.phase = .away
        stream = FrameStream()
        out.clear()
        isPausing = false
        outbox.ended()
        receipts.connectionEnded()
        run.ended(self, wasReady: wasReady)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let part = unwrapInboundIn(data)
        run.traffic.deviceBytesIn += part.readableBytes
        let now = LoadRun.now
        do {
            try stream.append(part) { handle($0, now) }
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

    private func handle(_ frame: UnsafeRawBufferPointer, _ now: Int64) {
        run.traffic.framesIn += 1
        switch ScannedFrame(frame) {
        case .push(let push):
            let isWhole = ScannedBatch.each(frame, in: push) { handle($0, frame, now) }
            if !isWhole { run.foundStranger() }
        case .recorded(let reportID): receipts.recorded(reportID)
        case .caughtUp where connection.phase == .connecting:
            connection.phase = .ready
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
        case .close(_, let pause): connection.pauseMilliseconds = Int64(min(pause, 60_000))
        case nil: run.foundStranger()
        default: break
        }
    }

    private func handle(_ batch: ScannedBatch, _ frame: UnsafeRawBufferPointer, _ now: Int64) {
        let index = receipts.channel(batch.kind, UnsafeRawBufferPointer(rebasing: frame[batch.bizType]))
        if batch.after > receipts.position(ofChannel: index) { run.foundGap() }
        let isWhole = batch.eachEntry(frame) { oplogID, payload in
            if !receipts.receive(oplogID, inChannel: index) { run.foundDisorder() }
            let payload = UnsafeRawBufferPointer(rebasing: frame[payload])
            if batch.kind == 1, let results = OperationResults(payload) {
                for result in results.results {
                    outbox.complete(result.operationId)
                    run.operations.recordResult(
                        result.operationId, to: name, isAccepted: result.accepted, code: result.code, at: now)
                }
            } else if let stamp = PushStamp(payload, run: run.runBytes) {
                run.delivered(stamp, to: number, now)
            } else if batch.kind == 0 {
                // Global data of other runs reaches every device. Other foreign data is a fault.
                run.foundStranger()
            }
        }
        if !isWhole { run.foundStranger() }
        if receipts.finish(batch, inChannel: index) { run.fleet.dirtyDevices += 1 }
    }

    /// Acknowledges everything since the last call in one write.
    private func answer() {
        if connection.phase == .ready, receipts.writeAnswers(into: &out) {
            run.fleet.dirtyDevices -= 1
            run.progressed()
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
        let plan = run.plan
        let packet = Mss_Device_V1_Packet.with {
            $0.connect.protocolVersion = DeviceProtocolLimits.version
            $0.connect.instanceID = plan.instance
            $0.connect.deviceID = name
            $0.connect.storeID = "load-\(plan.run)"
            $0.connect.osName = "iOS"
            $0.connect.appVersion = "1.0"
            $0.connect.syncPoints = receipts.syncPoints(isUser: false)
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = plan.user(ofDevice: number)
            $0.connect.bind.sessionID = "load"
            $0.connect.bind.syncPoints = receipts.syncPoints(isUser: true)
            $0.connect.bind.requestedByApp = true
            $0.connect.deviceSecret = secret
        }
        return plan.connectSigner?.signed(packet, now: .now) ?? packet
    }
}
