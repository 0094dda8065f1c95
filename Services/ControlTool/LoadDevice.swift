import Credentials
import DeviceProtocol
import Foundation
import MobileSync
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel

/// A device of a load run: acknowledges and confirms at once, and stores nothing.
final class LoadDevice: ChannelInboundHandler {
    typealias InboundIn = Mss_Device_V1_Packet
    typealias OutboundOut = ByteBuffer

    private let number: Int
    private let plan: LoadPlan
    private let onReady: () -> Void
    private let onEntry: (_ device: Int, _ oplogID: Int64, _ push: Int) -> Void
    private let onClosed: () -> Void
    private var isReady = false
    private var reportID: UInt64 = 0

    init(
        number: Int, plan: LoadPlan, onReady: @escaping () -> Void,
        onEntry: @escaping (_ device: Int, _ oplogID: Int64, _ push: Int) -> Void, onClosed: @escaping () -> Void
    ) {
        self.number = number
        self.plan = plan
        self.onReady = onReady
        self.onEntry = onEntry
        self.onClosed = onClosed
    }

    func channelActive(context: ChannelHandlerContext) {
        let connect = Mss_Device_V1_Packet.with {
            $0.connect.protocolVersion = DeviceProtocolLimits.version
            $0.connect.instanceID = plan.instance
            $0.connect.deviceID = "load-\(plan.runID)-d\(number)"
            $0.connect.storeID = "load-\(plan.runID)"
            $0.connect.osName = "iOS"
            $0.connect.appVersion = "1.0"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = plan.user(number)
            $0.connect.bind.sessionID = "load"
            // Every run has devices of its own.
            $0.connect.deviceSecret = Data(RandomBytes.make(32))
        }
        send(plan.connectSigner?.signed(connect, now: .now) ?? connect, context)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data).body {
        case .push(let push): take(push, context)
        case .caughtUp where !isReady:
            isReady = true
            onReady()
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) { onClosed() }

    private func take(_ push: Mss_Device_V1_Push, _ context: ChannelHandlerContext) {
        // Global data of the instance comes to every device; it is acknowledged and no part of the run.
        for entry in push.batches.filter({ $0.bizType == plan.bizType }).flatMap(\.entries) {
            let digits = entry.payload.prefix { $0 != UInt8(ascii: ",") }
            let number = digits.reduce(0) { $0 * 10 + Int($1) - 48 }
            onEntry(self.number, entry.oplogID, number)
        }
        reportID += 1
        var buffer = context.channel.allocator.buffer(capacity: 256)
        PacketEncoder.encode(
            .with {
                $0.storedAck.channels = push.batches.map { batch in
                    .with {
                        $0.kind = batch.kind
                        $0.bizType = batch.bizType
                        $0.bindNumber = batch.bindNumber
                        $0.upto = batch.upto
                    }
                }
            }, into: &buffer)
        PacketEncoder.encode(
            .with {
                $0.confirmReport.reportID = reportID
                $0.confirmReport.channels = push.batches.map { batch in
                    .with {
                        $0.kind = batch.kind
                        $0.bizType = batch.bizType
                        $0.bindNumber = batch.bindNumber
                        $0.oplogIds = batch.entries.map(\.oplogID)
                    }
                }
            }, into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }

    private func send(_ packet: Mss_Device_V1_Packet, _ context: ChannelHandlerContext) {
        var buffer = context.channel.allocator.buffer(capacity: 256)
        PacketEncoder.encode(packet, into: &buffer)
        context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
    }
}
