/// A share of all devices: a range of consecutive slots; slot 0 follows the last one. Adjacent shares have no device in
/// common and leave none out.
package struct DeviceShare: Hashable, Sendable {
    /// The first slot, 0..<10,000.
    package let start: Int
    /// The number of slots from `start` on, 1...10,000.
    package let size: Int

    /// All devices.
    package static let everyone = DeviceShare(start: 0, size: DeviceSlot.count)

    /// Any size outside of 1...9,999 means all devices, as in stored rows and messages without a share.
    package init(start: Int, size: Int) {
        let isPart = (1..<DeviceSlot.count).contains(size)
        self.start = isPart ? DeviceSlot(number: start).number : 0
        self.size = isPart ? size : DeviceSlot.count
    }

    /// Whether devices of this slot belong to it.
    package func contains(_ slot: DeviceSlot) -> Bool { DeviceSlot(number: slot.number - start).number < size }
}

/// The slot of a device id: a number below 10,000. It is the same in every process, build and release, and evenly
/// distributed for any form of ids.
///
/// FNV-1a (64 bits) over the id's UTF-8 bytes, followed by the final mixing of MurmurHash3. Without the mixing, ids
/// that differ only in their last letters would have near slots. The slot is the upper half of hash × 10,000.
package struct DeviceSlot: Hashable, Sendable {
    /// The number of slots; one slot is 0.01 % of all devices.
    package static let count = 10_000

    /// 0..<10,000.
    package let number: Int

    /// The slot of a device.
    package init(of deviceID: DeviceID) { self.init(hashing: deviceID.text) }

    /// The slot of any text.
    package init(hashing text: String) {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        hash = (hash ^ hash >> 33) &* 0xff51_afd7_ed55_8ccd
        hash = (hash ^ hash >> 33) &* 0xc4ce_b9fe_1a85_ec53
        hash ^= hash >> 33
        number = Int(hash.multipliedFullWidth(by: UInt64(Self.count)).high)
    }

    /// The slot with a number modulo 10,000.
    package init(number: Int) { self.number = (number % Self.count + Self.count) % Self.count }
}
