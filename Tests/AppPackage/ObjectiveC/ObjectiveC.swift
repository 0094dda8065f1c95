// A stand-in for the Swift part of the Objective-C runtime's module.
@_exported import ObjectiveC

public struct Selector: Sendable {
    private let name: UInt
}
