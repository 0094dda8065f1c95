import DeviceProtocol
import NIOCore
import SwiftProtobuf

/// The data that a load device has received: its channels, with the acknowledgements and reports that it must send.
struct DeviceReceipts {
    private var channels: [DeviceChannel] = []
    private var reportID: UInt64 = 0
    private var isReporting = false
    /// An acknowledgement is unsent, or a report is unsent or not recorded.
    private var isDirty = false

    /// The index of a channel. A channel that is not known yet is added.
    mutating func channel(_ kind: UInt64, _ bizType: UnsafeRawBufferPointer) -> Int {
        if let known = channels.firstIndex(where: { $0.isNamed(kind: kind, bizType) }) { return known }
        channels.append(DeviceChannel(kind: kind, bizType: Array(bizType)))
        return channels.count - 1
    }

    /// Every oplog of the channel up to this id was received.
    func position(ofChannel index: Int) -> Int64 { channels[index].position }

    /// Records an oplog.
    ///
    /// - Returns: false if its id is not above the last one.
    mutating func receive(_ oplogID: Int64, inChannel index: Int) -> Bool {
        channels[index].unreported.append(oplogID)
        defer { channels[index].lastOplogID = oplogID }
        return oplogID > channels[index].lastOplogID
    }

    /// Records the end of a batch.
    ///
    /// - Returns: whether the device had nothing to send before.
    mutating func finish(_ batch: ScannedBatch, inChannel index: Int) -> Bool {
        channels[index].bindNumber = batch.bindNumber
        channels[index].position = max(channels[index].position, batch.upto)
        channels[index].isUnacknowledged = true
        defer { isDirty = true }
        return !isDirty
    }

    /// Appends frames for all data since the last call. Only one report is in flight at a time.
    ///
    /// - Returns: whether the device has nothing to send any more.
    mutating func writeAnswers(into buffer: inout ByteBuffer) -> Bool {
        AckFrames.writeStored(&channels, into: &buffer)
        if !isReporting, AckFrames.writeReport(reportID + 1, &channels, into: &buffer) {
            reportID += 1
            isReporting = true
        }
        guard isDirty, !isReporting else { return false }
        isDirty = false
        return true
    }

    /// Records that the gateway has recorded a report. Other reports than the last one are ignored.
    mutating func recorded(_ reportID: UInt64) {
        guard isReporting, reportID == self.reportID else { return }
        isReporting = false
        for index in channels.indices { channels[index].reporting.removeAll(keepingCapacity: true) }
    }

    /// Adds the ids of the report in flight to the next report.
    mutating func connectionEnded() {
        isReporting = false
        for index in channels.indices {
            channels[index].unreported.insert(contentsOf: channels[index].reporting, at: 0)
            channels[index].reporting = []
        }
    }

    /// The positions of the user channels or of the device channels.
    func syncPoints(isUser: Bool) -> [Mss_Device_V1_SyncPoint] {
        channels.filter { ($0.kind % 2 == 0) == isUser }.map { channel in
            .with {
                $0.kind = Mss_Device_V1_ChannelKind(rawValue: Int(channel.kind)) ?? .user
                $0.bizType = String(decoding: channel.bizType, as: UTF8.self)
                $0.oplogID = channel.position
            }
        }
    }
}
