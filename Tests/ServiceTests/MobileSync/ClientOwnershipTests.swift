import DeviceProtocol
import SwiftProtobuf
import Testing

@testable import MobileSync

@Suite("A device asks for ownership when its app binds (D8)") struct ClientOwnershipTests {
    private static let now = ContinuousClock.now

    private static func user(request: UInt64?) -> BoundUser {
        BoundUser(userID: "u", sessionID: "s", request: request)
    }

    private static func opened(request: UInt64?) -> (ClientStateMachine, [ClientAction]) {
        var machine = ClientStateMachine()
        let actions = machine.opened(
            .with { $0.protocolVersion = 1 }, user: user(request: request), points: [], now: now)
        return (machine, actions)
    }

    private static func binds(_ actions: [ClientAction]) -> [Mss_Device_V1_Bind] {
        actions.compactMap { action in
            guard case .send(let packet) = action else { return nil }
            return switch packet.body {
            case .connect(let connect)?: connect.bind
            case .bind(let bind)?: bind
            default: nil
            }
        }
    }

    private static func taken(_ bind: UInt32) -> Mss_Device_V1_Packet {
        .with {
            $0.ownershipTaken.bindNumber = bind
            $0.ownershipTaken.ownershipEpoch = 40
        }
    }

    @Test("the bind of the app asks for it, a reconnect does not") func asks() {
        #expect(Self.binds(Self.opened(request: 1).1).map(\.requestedByApp) == [true])
        #expect(Self.binds(Self.opened(request: nil).1).map(\.requestedByApp) == [false])
    }

    @Test("it is requested until a gateway says that the device owns the user, by this bind") func settles() {
        var (machine, _) = Self.opened(request: 1)
        #expect(machine.received(Self.taken(7), now: Self.now).isEmpty)
        #expect(machine.received(Self.taken(1), now: Self.now) == [.ownershipTaken(request: 1, epoch: 40)])
        let board = ClientSharedState()
        board.setUser(BoundUser(userID: "u", sessionID: "s"))
        let first = board.userToBind?.request
        board.setUser(BoundUser(userID: "u", sessionID: "s"))
        let second = board.userToBind?.request
        #expect(first != nil && second != nil && first != second)
        if let first { board.recordOwnership(request: first, epoch: 40) }
        #expect(board.userToBind?.request == second, "the answer to an earlier bind says nothing of this one")
        if let second { board.recordOwnership(request: second, epoch: 41) }
        #expect(board.userToBind == BoundUser(userID: "u", sessionID: "s") && board.userToBind?.request == nil)
        #expect(board.userToBind?.ownershipEpoch == 41)
    }

    @Test("the next bind says under which epoch the device became the owner; one that the app asks for does not")
    func repeats() {
        var user = Self.user(request: 1)
        user.recordOwnership(epoch: 40)
        var machine = ClientStateMachine()
        let again = machine.opened(.with { $0.protocolVersion = 1 }, user: user, points: [], now: Self.now)
        #expect(Self.binds(again).map(\.ownershipEpoch) == [40])
        #expect(Self.binds(again).map(\.requestedByApp) == [false])
        let board = ClientSharedState()
        board.setUser(user)
        #expect(board.userToBind?.ownershipEpoch == 0 && board.userToBind?.request != nil)
    }

    @Test("an app that binds the same user again asks again") func bindsAgain() {
        var (machine, _) = Self.opened(request: 1)
        #expect(machine.userChanged(to: Self.user(request: nil), points: [], now: Self.now).isEmpty)
        let again = Self.binds(machine.userChanged(to: Self.user(request: 2), points: [], now: Self.now))
        #expect(again.map(\.bindNumber) == [2] && again.map(\.requestedByApp) == [true])
        #expect(machine.userChanged(to: Self.user(request: 2), points: [], now: Self.now).isEmpty)
    }
}
