import NIOCore

/// Writes a device's acknowledgements as frames, directly into the output buffer.
enum AckFrames {
    /// Most ids of one report: a device's frame holds 64 KiB, an id up to 10 bytes.
    static let reportMax = 4_000

    /// Appends a `StoredAck` for channels with a new position. Appends nothing if there is none.
    static func writeStored(_ channels: inout [DeviceChannel], into buffer: inout ByteBuffer) {
        let size = channels.reduce(0) { $0 + ($1.isUnacknowledged ? bytes(ofField: storedBytes($1)) : 0) }
        guard size > 0 else { return }
        open(packetField: 6, size: size, &buffer)
        for index in channels.indices where channels[index].isUnacknowledged {
            channels[index].isUnacknowledged = false
            let channel = channels[index]
            buffer.writeVarint(1 << 3 | 2)
            buffer.writeVarint(UInt64(storedBytes(channel)))
            writeName(of: channel, into: &buffer)
            if channel.position > 0 { buffer.writeVarintField(4, UInt64(channel.position)) }
        }
    }

    /// Appends a `ConfirmReport` with the unreported ids and marks them as in flight.
    ///
    /// - Returns: false, with nothing written, if there is nothing to report.
    static func writeReport(
        _ reportID: UInt64, _ channels: inout [DeviceChannel], into buffer: inout ByteBuffer
    ) -> Bool {
        var freeIDs = reportMax
        for index in channels.indices where freeIDs > 0 && !channels[index].unreported.isEmpty {
            if channels[index].unreported.count <= freeIDs {
                // The previous report is recorded, so its memory is reused.
                let free = channels[index].reporting
                channels[index].reporting = channels[index].unreported
                channels[index].unreported = free
            } else {
                channels[index].reporting = Array(channels[index].unreported.prefix(freeIDs))
                channels[index].unreported.removeFirst(freeIDs)
            }
            freeIDs -= channels[index].reporting.count
        }
        guard freeIDs < reportMax else { return false }
        let reported = channels.reduce(0) { $0 + ($1.reporting.isEmpty ? 0 : bytes(ofField: reportBytes($1))) }
        open(packetField: 7, size: 1 + varintBytes(reportID) + reported, &buffer)
        buffer.writeVarintField(1, reportID)
        for channel in channels where !channel.reporting.isEmpty {
            buffer.writeVarint(2 << 3 | 2)
            buffer.writeVarint(UInt64(reportBytes(channel)))
            writeName(of: channel, into: &buffer)
            buffer.writeVarint(4 << 3 | 2)
            buffer.writeVarint(UInt64(idBytes(channel)))
            for id in channel.reporting { buffer.writeVarint(UInt64(id)) }
        }
        return true
    }

    /// Appends a `Ping` or a `Pong`.
    static func writePing(_ number: UInt64, isAnswer: Bool, into buffer: inout ByteBuffer) {
        open(packetField: isAnswer ? 13 : 12, size: 1 + varintBytes(number), &buffer)
        buffer.writeVarintField(1, number)
    }

    // MARK: Sizes

    private static func open(packetField: UInt64, size: Int, _ buffer: inout ByteBuffer) {
        buffer.writeInteger(UInt32(bytes(ofField: size)))
        buffer.writeVarint(packetField << 3 | 2)
        buffer.writeVarint(UInt64(size))
    }

    private static func writeName(of channel: DeviceChannel, into buffer: inout ByteBuffer) {
        if channel.kind > 0 { buffer.writeVarintField(1, channel.kind) }
        buffer.writeVarint(2 << 3 | 2)
        buffer.writeVarint(UInt64(channel.bizType.count))
        buffer.writeBytes(channel.bizType)
        if channel.bindNumber > 0 { buffer.writeVarintField(3, channel.bindNumber) }
    }

    private static func nameBytes(_ channel: DeviceChannel) -> Int {
        (channel.kind > 0 ? 1 + varintBytes(channel.kind) : 0) + bytes(ofField: channel.bizType.count)
            + (channel.bindNumber > 0 ? 1 + varintBytes(channel.bindNumber) : 0)
    }

    private static func storedBytes(_ channel: DeviceChannel) -> Int {
        nameBytes(channel) + (channel.position > 0 ? 1 + varintBytes(UInt64(channel.position)) : 0)
    }

    private static func idBytes(_ channel: DeviceChannel) -> Int {
        channel.reporting.reduce(0) { $0 + varintBytes(UInt64($1)) }
    }

    private static func reportBytes(_ channel: DeviceChannel) -> Int {
        nameBytes(channel) + bytes(ofField: idBytes(channel))
    }

    /// Bytes of a length-delimited field with a number below 16.
    private static func bytes(ofField size: Int) -> Int { 1 + varintBytes(UInt64(size)) + size }

    private static func varintBytes(_ value: UInt64) -> Int { (64 - (value | 1).leadingZeroBitCount + 6) / 7 }
}

extension ByteBuffer {
    /// Appends a protobuf varint.
    fileprivate mutating func writeVarint(_ value: UInt64) {
        var value = value
        while value >= 0x80 {
            writeInteger(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        writeInteger(UInt8(truncatingIfNeeded: value))
    }

    /// Appends a varint field with a number below 16.
    fileprivate mutating func writeVarintField(_ number: UInt64, _ value: UInt64) {
        writeVarint(number << 3)
        writeVarint(value)
    }
}
