// A stand-in for the Swift part of Foundation: the bridges of the types that the compatibility API passes to
// Objective-C. Bodies are never run.
@_exported import Foundation
@_exported import ObjectiveC

public protocol Bridged: _ObjectiveCBridgeable {}

extension Bridged {
    public func _bridgeToObjectiveC() -> _ObjectiveCType { fatalError() }
    public static func _forceBridgeFromObjectiveC(_ source: _ObjectiveCType, result: inout Self?) { fatalError() }
    public static func _conditionallyBridgeFromObjectiveC(
        _ source: _ObjectiveCType, result: inout Self?
    ) -> Bool { fatalError() }
    public static func _unconditionallyBridgeFromObjectiveC(_ source: _ObjectiveCType?) -> Self { fatalError() }
}

extension String: Bridged {
    public typealias _ObjectiveCType = NSString
}

extension AnyHashable: Bridged {
    public typealias _ObjectiveCType = NSObject
}

extension Dictionary: Bridged {
    public typealias _ObjectiveCType = NSDictionary
}

public struct URL: Sendable, Bridged {
    public typealias _ObjectiveCType = NSURL
}

public struct Notification: Sendable, Bridged {
    public typealias _ObjectiveCType = NSNotification
}
