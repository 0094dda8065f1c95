import DeviceProtocol
import SwiftProtobuf

/// A Connect whose nonce is being claimed, and the frames after it.
struct UnprovenConnect {
    /// The numbers of the frames that are refused before the Connect is accepted. Later frames must have higher ones.
    struct Numbers {
        var operations = SessionOperations()
        var parameters = ParameterKeeping()
    }

    /// Maximum of kept frames (DeviceProtocol.md, Framing).
    private static let framesMax = 16

    let connect: Mss_Device_V1_Connect
    /// Frames that are processed when the Connect is accepted.
    private(set) var frames: [Mss_Device_V1_Packet] = []
    private(set) var numbers = Numbers()

    init(_ connect: Mss_Device_V1_Connect) { self.connect = connect }

    /// Processes a frame that follows the Connect, other than those of the connection as such.
    mutating func receive(_ packet: Mss_Device_V1_Packet, in context: SessionContext) -> [SessionAction] {
        switch packet.body {
        case .bind, .foreground, .subscriptions:
            guard frames.count < Self.framesMax else {
                return [.close(.protocolViolation, "more than \(Self.framesMax) frames before Connected")]
            }
            frames.append(packet)
            return []
        case .historyRequest(let request):
            return [.answer(.historyPage(request.requestNumber, .tryAgain))]
        case .summaryRequest(let request):
            return [.answer(.summaryPage(request.requestNumber, .tryAgain, bindNumber: request.bindNumber))]
        case .submitOperations(let frame):
            return Self.refusal(numbers.operations.receive(frame, by: nil, in: context))
        case .keepParameters(let frame):
            return Self.refusal(numbers.parameters.receive(frame, by: nil, in: context))
        default: return []
        }
    }

    private static func refusal(_ outcome: UserWriteOutcome) -> [SessionAction] {
        switch outcome {
        case .actions(let actions): actions
        case .awaitsVerdict(let refusal): [refusal]
        }
    }
}
