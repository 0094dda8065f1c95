/// Where a device id falls on the circle of 10,000 slots that shares of devices are cut from: the same in every process,
/// build and release, and well spread however ids are made.
///
/// FNV-1a (64 bits) over the id's UTF-8 bytes, then the final mixing of MurmurHash3, without which ids that differ in
/// their last letters alone lie close together; the upper half of hash × 10,000 is the slot.
package struct DeviceSlot: Hashable, Sendable {
    /// How many there are: a slot is a hundredth of a percent of all devices.
    package static let count = 10_000

    /// 0..<10,000.
    package let number: Int

    /// The slot of a device.
    package init(of deviceID: DeviceID) { self.init(hashing: deviceID.text) }

    /// The slot that a text falls on.
    package init(hashing text: String) {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        hash = (hash ^ hash >> 33) &* 0xff51_afd7_ed55_8ccd
        hash = (hash ^ hash >> 33) &* 0xc4ce_b9fe_1a85_ec53
        hash ^= hash >> 33
        number = Int(hash.multipliedFullWidth(by: UInt64(Self.count)).high)
    }

    /// A slot by its number, which is taken round the circle.
    package init(number: Int) { self.number = (number % Self.count + Self.count) % Self.count }
}
