/// A share of all devices: slots that follow each other on the circle, so that shares which adjoin have no device in
/// common and leave none out.
package struct DeviceShare: Hashable, Sendable {
    /// The first slot, 0..<10,000.
    package let start: Int
    /// How many slots from there on, 1...10,000; behind the last comes the first again.
    package let size: Int

    /// All devices.
    package static let everyone = DeviceShare(start: 0, size: DeviceSlot.count)

    /// A share; one without a size between 1 and 9,999 is everyone, as stores and messages that name none have it.
    package init(start: Int, size: Int) {
        let isPart = (1..<DeviceSlot.count).contains(size)
        self.start = isPart ? DeviceSlot(number: start).number : 0
        self.size = isPart ? size : DeviceSlot.count
    }

    /// Whether devices of this slot belong to it.
    package func contains(_ slot: DeviceSlot) -> Bool { DeviceSlot(number: slot.number - start).number < size }
}
