"""EIGAC as a torch optimiser: the solver's iterates, groups, states, closures, precisions."""

import copy
import math
import pickle

import numpy as np
import pytest
import torch
from integrations.learned import COLUMNS, HORIZON, NOT_LEARNED, logistic, method, metrics, table
from support import said_without, visited

from ode2opt import InputError, Schedule
from ode2opt.base.errors import DivergedError
from ode2opt.integrations.torch import Eigac
from ode2opt.solvers.methods import by_name

START = np.linspace(-1, 1, COLUMNS)


def loss_of(problem, dtype=torch.float64):
    """The problem's function, for torch to differentiate."""
    A, b = (torch.tensor(v, dtype=dtype) for v in (problem.A, problem.b))

    def loss(*params):
        x = torch.cat([param.reshape(-1) for param in params])
        z = A @ x
        return torch.mean(torch.nn.functional.softplus(z) - b * z) + 0.025 * x @ x

    return loss


def pieces(dtype=torch.float64):
    """The start in three parameters."""
    x = torch.tensor(START, dtype=dtype)
    return [torch.nn.Parameter(v.clone()) for v in (x[:1], x[1:5].reshape(2, 2), x[5:])]


def walked(optimizer, loss, params, count):
    """The parameters as one vector after 0, ..., count steps."""

    def closure():
        optimizer.zero_grad()
        value = loss(*params)
        value.backward()
        return value

    def now():
        return np.concatenate([param.detach().numpy().ravel() for param in params])

    points = [now()]
    for _ in range(count):
        assert optimizer.step(closure).requires_grad
        points.append(now())
    return points


@pytest.mark.parametrize("kind", metrics())
@pytest.mark.parametrize("groups", [1, 3])
def test_the_parameters_are_the_solvers_iterates(kind, groups):
    problem, chosen, params = logistic(), method(metrics()[kind]), pieces()
    given = params if groups == 1 else [{"params": [param]} for param in params]
    found = walked(Eigac(given, method=chosen), loss_of(problem), params, HORIZON)
    due = visited(problem, START, chosen, HORIZON)
    np.testing.assert_allclose(found, due, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", metrics())
def test_single_precision_stays_single_and_close(kind):
    problem, chosen, params = logistic(), method(metrics()[kind]), pieces(torch.float32)
    loss = loss_of(problem, torch.float32)
    found = walked(Eigac(params, method=chosen), loss, params, HORIZON)
    assert found[-1].dtype == np.float32
    np.testing.assert_allclose(found, visited(problem, START, chosen, HORIZON), atol=1e-4)


@pytest.mark.parametrize("copied", ["state_dict", "deepcopy", "pickle", "torch.save"])
def test_a_run_goes_on_from_its_state(copied, tmp_path):
    problem, chosen, params = logistic(), method(metrics()["lowrank"]), pieces()
    optimizer, loss = Eigac(params, method=chosen), loss_of(problem)
    walked(optimizer, loss, params, 10)
    if copied in ("state_dict", "torch.save"):
        state = optimizer.state_dict()
        if copied == "torch.save":
            torch.save(state, tmp_path / "state.pt")
            state = torch.load(tmp_path / "state.pt", weights_only=True)
        params = [torch.nn.Parameter(param.detach().clone()) for param in params]
        optimizer = Eigac(params, method=chosen)
        optimizer.load_state_dict(state)
    else:
        copier = copy.deepcopy if copied == "deepcopy" else lambda o: pickle.loads(pickle.dumps(o))
        optimizer = copier(optimizer)
        params = optimizer.param_groups[0]["params"]
    found = walked(optimizer, loss, params, 10)
    np.testing.assert_allclose(found, visited(problem, START, chosen, 20)[10:], rtol=1e-10)


def test_groups_have_scales_of_their_own():
    first, second = (torch.nn.Parameter(torch.ones(2, dtype=torch.float64)) for _ in "ab")
    groups = [{"params": first}, {"params": second, "scale": 8.0}]
    optimizer = Eigac(groups, method=table(), scale=4.0)
    for _ in range(6):
        optimizer.zero_grad()
        (2 * first @ first + 4 * second @ second).backward()
        optimizer.step()
    # The gradients are 4 x and 8 x: divided by their curvatures, both fare alike.
    np.testing.assert_allclose(first.detach(), second.detach(), rtol=1e-14)
    assert float(first.detach()[0]) != 1


def test_a_group_added_later_begins_at_the_first_row():
    late, early = (torch.nn.Parameter(torch.ones(1, dtype=torch.float64)) for _ in "ab")
    optimizer = Eigac([early], method=table(), scale=4.0)
    seen = {early: [], late: []}
    for step in range(12):
        if step == 4:
            optimizer.add_param_group({"params": [late]})
        optimizer.zero_grad()
        (early @ early + late @ late).backward()
        optimizer.step()
        for param, values in seen.items():
            values.append(float(param.detach()[0]))
    assert seen[late][4:] == seen[early][:8]


def test_parameters_without_a_gradient_stay():
    moved, idle = (torch.nn.Parameter(torch.ones(1)) for _ in "ab")
    optimizer = Eigac([moved, idle], method=table())
    for _ in range(3):
        optimizer.zero_grad()
        (moved**2).sum().backward()
        optimizer.step()
    assert float(idle.detach()[0]) == 1 != float(moved.detach()[0])
    assert idle not in optimizer.state


def test_beyond_its_end_the_tables_last_row_goes_on():
    ends = []
    for K in (3, 30):
        x = torch.nn.Parameter(torch.ones(2))
        optimizer = Eigac([x], method=Schedule.heavy_ball(0.1, 0.5, K))
        ends.append(walked(optimizer, lambda x: x @ x, [x], 30)[-1])
    np.testing.assert_array_equal(*ends)


def test_a_method_may_be_given_by_its_name_or_its_path(tmp_path):
    chosen = method(metrics()["lowrank"])
    chosen.save(tmp_path / "mine.safetensors")
    ends = []
    for given in (chosen, tmp_path / "mine.safetensors"):
        params = pieces()
        ends.append(walked(Eigac(params, given), loss_of(logistic()), params, 5)[-1])
    np.testing.assert_array_equal(*ends)
    ends = []
    for given in (by_name("logistic-a5a"), "logistic-a5a"):
        x = torch.nn.Parameter(torch.ones(123))
        ends.append(walked(Eigac([x], given), lambda x: 1e-3 * (x @ x), [x], 5)[-1])
    np.testing.assert_array_equal(*ends)


def test_a_scale_is_found_as_the_documentation_says():
    problem, chosen, params = logistic(), method(scale="instance"), pieces()
    optimizer = Eigac(params, method=chosen, scale=chosen.scale_of(problem, START))
    found = walked(optimizer, loss_of(problem), params, HORIZON)
    np.testing.assert_allclose(found, visited(problem, START, chosen, HORIZON), atol=1e-9)


def train(optimizer, net, steps, closure):
    inputs = torch.linspace(-1, 1, 32).reshape(-1, 1)

    def loss():
        optimizer.zero_grad()
        value = ((net(inputs) - torch.sin(5 * inputs)) ** 2).mean()
        value.backward()
        return value

    for _ in range(steps):
        if closure:
            optimizer.step(loss)
        else:
            loss()
            optimizer.step()


@pytest.mark.parametrize("closure", [False, True])
def test_a_net_that_diverges_says_so_and_does_not_move(closure):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(1, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = Eigac(net.parameters(), Schedule.heavy_ball(5.0, 0.1, 50))
    with pytest.raises(DivergedError, match=r"is not finite.* larger scale than 1 \("):
        train(optimizer, net, 200, closure)
    before = [param.detach().clone() for param in net.parameters()]
    with pytest.raises(DivergedError):
        optimizer.step()
    for param, old in zip(net.parameters(), before, strict=True):
        np.testing.assert_array_equal(param.detach(), old)
    calm = Eigac(net.parameters(), Schedule.heavy_ball(5.0, 0.1, 50), scale=1e4)
    for param in net.parameters():
        torch.nn.init.constant_(param, 0.1)
    train(calm, net, 30, closure)


def test_one_bad_number_in_a_large_gradient_is_seen_by_the_tenth_step():
    small, large = (torch.nn.Parameter(torch.ones(n, dtype=torch.float16)) for n in (1, 500))
    optimizer = Eigac([small, large], table(), scale=100.0)

    def steps(count):
        for _ in range(count):
            small.grad, large.grad = torch.ones_like(small), torch.full_like(large, 6e4)
            large.grad[7] = math.nan
            optimizer.step()

    with pytest.raises(ArithmeticError, match="step 10 "):
        steps(12)
    large.grad = torch.full_like(large, 6e4)  # its sum is no number of half precision
    small.grad = torch.ones_like(small)
    optimizer._steps = 9
    optimizer.step()


def sparse_step():
    layer = torch.nn.Embedding(3, 2, sparse=True)
    layer(torch.tensor([1])).sum().backward()
    Eigac(layer.parameters(), method=table()).step()


def step_without_all_gradients():
    params = pieces()
    params[0].sum().backward()
    Eigac(params, method=method(metrics()["diagonal"])).step()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        *(
            (lambda given=given: Eigac(pieces(), given), said)
            for given, said in NOT_LEARNED.items()
        ),
        (lambda: Eigac(pieces(), "logistic-a5a"), "for 123 variables; the parameters have 7"),
        (
            lambda: Eigac(pieces(), method=method(scale="instance")),
            r"give scale=method.scale_of\(problem, x0\)",
        ),
        (lambda: Eigac([{"params": pieces(), "scale": -1.0}], method=table()), "scale is -1"),
        (lambda: Eigac(pieces()[:2], method=method(metrics()["lowrank"])), "7 variables"),
        (sparse_step, "dense gradients only"),
        (step_without_all_gradients, "gradients of all parameters"),
    ],
)
def test_what_cannot_run_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        wrong()


def test_without_torch_it_says_what_to_install():
    said = said_without("torch", "import ode2opt.integrations.torch")
    assert "pip install 'ode2opt[torch]' (in a clone: pip install -e '.[torch]')" in said
